"""The server extension: found by a Jupyter server, prompt on a kernel's web socket, still pictures in saved notebooks,
alternative texts in exports.

Nothing of other people's changes: not their outputs, not their preprocessors, not their settings files.
"""

import asyncio
import copy
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import nbformat.v4
import pytest
import tornado.httpserver
import tornado.netutil
import tornado.web
import tornado.websocket
from bs4 import BeautifulSoup
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager, LargeFileManager
from nbconvert import HTMLExporter, MarkdownExporter, SlidesExporter
from traitlets.config import Config

import browser
from posviz import server
from posviz.export import alternative_text

ROOT = Path(__file__).parent.parent
WIDGET = "application/vnd.jupyter.widget-view+json"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


def test_a_jupyter_server_finds_the_extension_and_finds_it_sound(tmp_path):
    folder = "jupyter_server_config.d"
    shutil.copytree(ROOT / "jupyter-config" / folder, tmp_path / folder)
    env = os.environ | {"JUPYTER_CONFIG_DIR": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-m", "jupyter", "server", "extension", "list"],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    here = (said.stdout + said.stderr).partition(f"Config dir: {tmp_path}")[2].partition("Config dir:")[0].splitlines()
    assert any("posviz.server" in line and "enabled" in line for line in here)
    assert any("posviz.server" in line and "OK" in line for line in here)


def test_the_class_that_the_server_would_use_is_kept_and_its_socket_is_prompt():
    """A real web socket, opened through a server whose settings the extension has changed."""
    seen = {}

    class Connection:
        def __init__(self, websocket_handler):
            self.websocket_handler = websocket_handler

        def connect(self):
            seen["connected"] = True

    class Handler(tornado.websocket.WebSocketHandler):
        def open(self):
            stream = self.ws_connection.stream.socket
            seen["before"] = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            connection = self.settings["kernel_websocket_connection_class"](websocket_handler=self)
            assert isinstance(connection, Connection)
            connection.connect()
            seen["after"] = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    async def talk():
        app = tornado.web.Application([("/", Handler)], kernel_websocket_connection_class=Connection, config=Config())
        server._load_jupyter_server_extension(SimpleNamespace(web_app=app, contents_manager=AsyncLargeFileManager()))
        (listening,) = tornado.netutil.bind_sockets(0, "127.0.0.1")
        serving = tornado.httpserver.HTTPServer(app)
        serving.add_socket(listening)
        client = await tornado.websocket.websocket_connect(f"ws://127.0.0.1:{listening.getsockname()[1]}/")
        while "after" not in seen:
            await asyncio.sleep(0.01)
        client.close()
        serving.stop()
        await serving.close_all_connections()

    asyncio.run(asyncio.wait_for(talk(), 20))
    assert seen["connected"] and not seen["before"] and seen["after"]


def extended(config=None, manager=None):
    """A server's settings with this `config` and this contents manager, after the extension was loaded."""
    manager = manager or AsyncLargeFileManager()
    settings = {"kernel_websocket_connection_class": object, "config": config or Config(), "contents_manager": manager}
    web_app = SimpleNamespace(settings=settings)
    server._load_jupyter_server_extension(SimpleNamespace(web_app=web_app, contents_manager=manager))
    return settings


def notebook_of(*outputs):
    """A notebook that shows the outputs given, each as (data, metadata)."""
    made = [nbformat.v4.new_output("display_data", data, metadata=metadata) for data, metadata in outputs]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=made)])


OURS = {"image/png": PIXEL, "text/plain": "A clock."}, {"image/png": {"alt": "A <clock>"}, "posviz": {"view": "Clock"}}
THEIRS = {"image/png": PIXEL, "text/plain": "x", WIDGET: {"model_id": "1"}}, {"image/png": {"alt": "Their picture"}}


def pictures_of(page):
    return BeautifulSoup(page, "html.parser").select(".jp-OutputArea-output img")


def test_only_pictures_of_posviz_get_their_text_and_lose_their_widget():
    ours = {**OURS[0], WIDGET: {"model_id": "0"}}, OURS[1]
    for extension, kind in ((".html", "text/html"), (".md", "text/markdown")):
        notebook = notebook_of(ours, THEIRS, ({"text/plain": "words"}, {"posviz": {}}))
        before = copy.deepcopy(notebook)
        alternative_text(notebook, {"output_extension": extension})
        changed, *others = notebook.cells[0].outputs
        assert others == before.cells[0].outputs[1:]
        assert changed.metadata == OURS[1] and set(changed.data) == {*OURS[0], kind}


@pytest.mark.parametrize("exporter", [HTMLExporter, SlidesExporter, MarkdownExporter])
def test_an_export_has_the_text_of_a_picture_beside_what_the_user_has_set(exporter):
    seen = []
    config = Config({"Exporter": {"preprocessors": [lambda *given: seen.append("theirs") or given]}})
    text, resources = exporter(config=extended(config)["config"]).from_notebook_node(notebook_of(OURS, THEIRS))
    assert seen == ["theirs"]
    if exporter is MarkdownExporter:
        assert "![A <clock>](output_0_0.png)" in text and "![png](output_0_1.png)" in text
        assert set(resources["outputs"]) == {"output_0_0.png", "output_0_1.png"}
    else:
        ours, theirs = pictures_of(text)
        assert ours["alt"] == "A <clock>"
        assert theirs == pictures_of(exporter().from_notebook_node(notebook_of(OURS, THEIRS))[0])[1]


LIVE = {**OURS[0], WIDGET: {"model_id": "7"}}, OURS[1]
LONG = {"name": "python", "version": "3.12.1", "mimetype": "text/x-python"}


def saved(contents, notebook, path="a.ipynb"):
    """What lies on the disk once `notebook` was saved in a page that ran its cells."""
    for cell in notebook.cells:
        cell.metadata["trusted"] = True
    model = {"type": "notebook", "format": "json", "content": copy.deepcopy(notebook)}
    asyncio.run(contents.save(model, path))
    return nbformat.read(Path(contents.root_dir) / path, 4)


@pytest.fixture
def contents(tmp_path):
    """The contents manager that the extension gives to whoever asks over HTTP; its kernel has the widget 7 alone."""
    contents = extended(manager=AsyncLargeFileManager(root_dir=str(tmp_path)))["contents_manager"]

    async def living(path):
        return {"7"}

    contents._living = living
    return contents


def test_a_save_keeps_the_still_picture_of_posviz_without_its_widget_and_all_that_is_not_of_posviz(contents):
    only_live = {WIDGET: {"model_id": "8"}, "text/plain": "a slider"}, {"posviz": {}}
    notebook = notebook_of(LIVE, THEIRS, only_live)
    notebook.metadata["language_info"] = LONG
    before = copy.deepcopy(notebook)
    stored = saved(contents, notebook)
    changed, *others = stored.cells[0].outputs
    assert (changed.data, changed.metadata) == OURS
    assert others == before.cells[0].outputs[1:] and stored.metadata == before.metadata


def test_a_save_keeps_what_a_chapter_says_about_its_language(contents):
    notebook = notebook_of(LIVE)
    notebook.metadata.update(language_info=LONG, posviz={"chapter": True})
    assert saved(contents, notebook).metadata == {"language_info": {"name": "python"}, "posviz": {"chapter": True}}


def test_a_save_of_a_chapter_leaves_no_trace_of_a_progress_bar_that_a_slow_machine_showed(contents):
    text, bar = {"output_type": "stream", "name": "stdout", "text": "one\n"}, ({}, {})
    notebook = notebook_of(bar, LIVE)
    notebook.cells[0].outputs = [nbformat.from_dict(text), *notebook.cells[0].outputs, nbformat.from_dict(text)]
    notebook.cells[0].outputs.insert(1, nbformat.from_dict(text))
    assert len(saved(contents, notebook).cells[0].outputs) == 5
    notebook.metadata["posviz"] = {"chapter": True}
    first, picture, last = saved(contents, notebook).cells[0].outputs
    assert (first.text, picture.data, last.text) == ("one\none\n", OURS[0], "one\n")
    (cell,) = asyncio.run(contents.get("a.ipynb"))["content"].cells
    assert cell.outputs[1].data == LIVE[0]


def test_a_page_that_is_loaded_again_gets_the_widgets_that_live(contents):
    notebook = notebook_of(LIVE, THEIRS)
    stored = saved(contents, notebook)
    (cell,) = asyncio.run(contents.get("a.ipynb"))["content"].cells
    assert cell.outputs == notebook.cells[0].outputs and cell.metadata["trusted"]
    assert nbformat.read(Path(contents.root_dir) / "a.ipynb", 4) == stored

    stored.cells[0].outputs[1].data["text/plain"] = "changed by somebody else"
    nbformat.write(stored, Path(contents.root_dir) / "a.ipynb")
    (cell,) = asyncio.run(contents.get("a.ipynb"))["content"].cells
    assert WIDGET not in cell.outputs[0].data and not cell.metadata["trusted"]


def test_a_widget_whose_kernel_is_gone_or_whose_cell_was_not_trusted_stays_out(contents):
    gone = {**OURS[0], WIDGET: {"model_id": "6"}}, OURS[1]
    saved(contents, notebook_of(gone))
    (cell,) = asyncio.run(contents.get("a.ipynb"))["content"].cells
    assert WIDGET not in cell.outputs[0].data
    model = {"type": "notebook", "format": "json", "content": notebook_of(LIVE)}
    asyncio.run(contents.save(model, "b.ipynb"))
    (cell,) = asyncio.run(contents.get("b.ipynb"))["content"].cells
    assert WIDGET not in cell.outputs[0].data and not cell.metadata["trusted"]


def test_other_files_and_other_contents_managers_stay_as_they_are(contents, tmp_path):
    asyncio.run(contents.save({"type": "file", "format": "text", "content": WIDGET}, "a.txt"))
    assert asyncio.run(contents.get("a.txt"))["content"] == WIDGET
    assert asyncio.run(contents.get("a.txt", content=False))["content"] is None
    assert isinstance(contents, AsyncLargeFileManager) and contents.root_dir == str(tmp_path)
    manager = LargeFileManager(root_dir=str(tmp_path))
    assert extended(manager=manager)["contents_manager"] is manager


def test_a_kernel_that_does_not_answer_does_not_keep_a_notebook_from_opening(tmp_path):
    contents = extended(manager=AsyncLargeFileManager(root_dir=str(tmp_path)))["contents_manager"]
    saved(contents, notebook_of(LIVE))
    (cell,) = asyncio.run(contents.get("a.ipynb"))["content"].cells  # this server has no kernels at all
    assert (cell.outputs[0].data, cell.outputs[0].metadata) == OURS


def test_a_file_name_with_a_space_can_be_linked_to():
    notebook = notebook_of(OURS)
    notebook.cells[0].outputs[0].metadata["filenames"] = {"image/png": os.path.join("my files", "a 1.png")}
    alternative_text(notebook, {"output_extension": ".md"})
    assert notebook.cells[0].outputs[0].data["text/markdown"] == "![A <clock>](my%20files/a%201.png)"


def test_a_running_server_exports_a_picture_with_its_text(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "notebooks").mkdir()
    nbformat.write(notebook_of(OURS, THEIRS), tmp_path / "notebooks" / "clock.ipynb")
    with browser.server(tmp_path / "notebooks", home) as url:
        asked = urllib.request.Request(f"{url}/nbconvert/html/clock.ipynb", headers={"Referer": f"{url}/lab"})
        ours, theirs = pictures_of(urllib.request.urlopen(asked, timeout=60))
    assert ours["alt"] == OURS[1]["image/png"]["alt"] and theirs["alt"] != THEIRS[1]["image/png"]["alt"]


def test_what_is_installed_names_this_module():
    config = json.loads((ROOT / "jupyter-config/jupyter_server_config.d/posviz.json").read_text(encoding="utf-8"))
    assert config == {"ServerApp": {"jpserver_extensions": {server.__name__: True}}}
    assert server._jupyter_server_extension_points() == [{"module": server.__name__}]
