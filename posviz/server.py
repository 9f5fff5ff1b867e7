"""A Jupyter server extension: what the kernel says leaves for the browser at once, and exports keep alternative texts.

It changes two things of the server that loads it, in memory, and nothing of a notebook that is stored:

The web sockets to all its kernels become prompt. TCP holds a small packet back until the one before it has been
acknowledged (Nagle's algorithm), and a browser may take 40 ms to acknowledge. A moved slider makes small messages and a
picture, so a drag stumbles: 20 pictures a second in place of 30. Tornado recommends `set_nodelay` for web sockets that
answer a user; jupyter_server 2 does not call it.

"Save and Export" to HTML and Markdown runs `posviz.export.alternative_text` after the preprocessors that the user has
set. It changes the outputs of posviz, no others.

jupyter-config/jupyter_server_config.d/posviz.json turns this extension on wherever posviz is installed.
"""

PREPROCESSOR = "posviz.export.alternative_text"


def _jupyter_server_extension_points():
    return [{"module": "posviz.server"}]


def _load_jupyter_server_extension(server):
    """Prompt web sockets, exports with alternative texts; jupyter_server calls it with its ServerApp."""
    settings, key = server.web_app.settings, "kernel_websocket_connection_class"

    class Prompt(settings[key]):
        def connect(self):
            self.websocket_handler.set_nodelay(True)
            return super().connect()

    settings[key] = Prompt
    config = settings["config"]  # what the export's handlers read; `server.config` may be a copy by now
    for exporter in (config.HTMLExporter, config.MarkdownExporter):
        exporter.preprocessors.append(PREPROCESSOR)
