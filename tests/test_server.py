"""The server extension is found by a Jupyter server, and turns Nagle's algorithm off on a kernel's web socket."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import tornado.httpserver
import tornado.netutil
import tornado.web
import tornado.websocket

from posviz import server

ROOT = Path(__file__).parent.parent


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
        app = tornado.web.Application([("/", Handler)], kernel_websocket_connection_class=Connection)
        server._load_jupyter_server_extension(SimpleNamespace(web_app=app))
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


def test_what_is_installed_names_this_module():
    config = json.loads((ROOT / "jupyter-config/jupyter_server_config.d/posviz.json").read_text(encoding="utf-8"))
    assert config == {"ServerApp": {"jpserver_extensions": {server.__name__: True}}}
    assert server._jupyter_server_extension_points() == [{"module": server.__name__}]
