"""A Jupyter server extension: messages leave at once, saved notebooks keep their pictures, exports keep their texts.

It changes four things of the server that loads it, in memory; nothing in notebooks and outputs that are not of posviz:

The web sockets to all its kernels become prompt. TCP holds a small packet back until the one before it has been
acknowledged (Nagle's algorithm), and a browser may take 40 ms to acknowledge. A moved slider makes small messages and a
picture, so a drag stumbles: 20 pictures a second in place of 30. Tornado recommends `set_nodelay` for web sockets that
answer a user; jupyter_server 2 does not call it.

A save leaves the live widget of a picture of posviz out of the file and keeps the still one, which lies beside it in
the same output: the widget lives as long as its kernel, and a file that names it reads "model not found" ever after.
In a chapter of the course it also keeps `language_info` as it is stored, the name of the language alone: JupyterLab
adds the version of this machine's Python, and a run that changed nothing would change the file. So would the empty
frame that a progress bar leaves where the machine is slow: it is left out, too.

A page that is loaded again gets the widgets back that a save from this server left out, as long as they live in the
notebook's kernel.

"Save and Export" to HTML and Markdown runs `posviz.export.alternative_text` after the preprocessors that the user has
set.

jupyter-config/jupyter_server_config.d/posviz.json turns this extension on wherever posviz is installed.
"""

import inspect
import json
import logging
from hashlib import sha256

from posviz.export import WIDGET, is_picture

PREPROCESSOR = "posviz.export.alternative_text"


def _jupyter_server_extension_points():
    return [{"module": "posviz.server"}]


def _load_jupyter_server_extension(server):
    """All that is said above; jupyter_server calls it with its ServerApp."""
    settings, key = server.web_app.settings, "kernel_websocket_connection_class"

    class Prompt(settings[key]):
        def connect(self):
            self.websocket_handler.set_nodelay(True)
            return super().connect()

    settings[key] = Prompt
    config = settings["config"]  # what the export's handlers read; `server.config` may be a copy by now
    for exporter in (config.HTMLExporter, config.MarkdownExporter):
        exporter.preprocessors.append(PREPROCESSOR)
    contents = Contents(server)
    server.contents_manager.register_pre_save_hook(contents.leave_out)
    if inspect.iscoroutinefunction(server.contents_manager.get):  # as it is, unless the user has set another manager
        settings["contents_manager"] = contents


class Contents:
    """The server's contents manager for those who ask over HTTP: it puts back the widgets that a save left out."""

    __class__ = property(lambda self: type(self._manager))  # for whoever asks isinstance(...)

    def __init__(self, server):
        self._server, self._manager, self._left_out = server, server.contents_manager, {}

    def __getattr__(self, name):
        return getattr(self._manager, name)

    def leave_out(self, model, **place):
        """The hook before a save: no widget beside a still picture of posviz. A cell that was run is remembered."""
        notebook = model.get("content") if model["type"] == "notebook" else None
        chapter = bool(notebook) and "posviz" in notebook["metadata"]
        for cell in cells_of(notebook):
            if chapter:
                cell["outputs"] = without_empty(cell["outputs"])
            widgets = [output["data"].pop(WIDGET, None) if is_picture(output) else None for output in cell["outputs"]]
            if any(widgets) and cell["metadata"].get("trusted"):
                self._left_out.setdefault(shown_by(cell), []).append(widgets)
        if chapter:
            notebook["metadata"]["language_info"] = {"name": "python"}

    async def get(self, path, content=True, type=None, **options):
        model = await self._manager.get(path, content, type, **options)
        notebook = model["content"] if content and model["type"] == "notebook" else None
        if known := [cell for cell in cells_of(notebook) if shown_by(cell) in self._left_out]:
            living = await self._living(path.strip("/"))
            for cell in known:
                for widgets in self._left_out[shown_by(cell)]:
                    if all(widget["model_id"] in living for widget in widgets if widget):
                        put_back(cell, widgets)
                        break
        return model

    async def _living(self, path):
        """The widgets that live in the kernel of the notebook at `path`: their ids, none if the kernel does not say."""
        try:
            sessions = await self._server.session_manager.list_sessions()
            kernel = next(session["kernel"]["id"] for session in sessions if session["path"] == path)
            client = self._server.kernel_manager.get_kernel(kernel).client()
            client.start_channels(shell=False, iopub=False, stdin=False, hb=False)  # "control" is heard in a run, too
            try:
                client.control_channel.send(client.session.msg("comm_info_request", {"target_name": "jupyter.widget"}))
                return set((await client.get_control_msg(timeout=3))["content"]["comms"])
            finally:
                client.stop_channels()
        except Exception as error:  # whatever it is: the notebook opens, with its still pictures
            logging.getLogger(__name__).info("no live pictures in %s: %r", path, error)
            return set()


def cells_of(notebook):
    """The code cells of a notebook, or of none."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"] if notebook else []


def without_empty(outputs):
    """The outputs without the empty frames of a progress bar on a slow machine; texts that they parted are joined."""
    kept = []
    for output in outputs:
        if output["output_type"] == "stream" and kept and kept[-1].get("name") == output["name"]:
            kept[-1]["text"] += output["text"]
        elif output.get("data") != {}:
            kept.append(output)
    return kept


def shown_by(cell):
    """A fingerprint of what a cell shows once the widgets are left out."""
    return sha256(json.dumps([cell.get("id"), cell["outputs"]], sort_keys=True).encode()).digest()


def put_back(cell, widgets):
    """The widgets into the cell's outputs; it was run, so it was trusted when they were left out."""
    cell["metadata"]["trusted"] = True
    for output, widget in zip(cell["outputs"], widgets):
        if widget:
            output["data"][WIDGET] = widget
