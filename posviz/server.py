"""A Jupyter server extension: what the kernel says leaves for the browser at once.

TCP holds a small packet back until the one before it has been acknowledged (Nagle's algorithm), and a browser may take
40 ms to acknowledge. A moved slider makes small messages and a picture, so a drag stumbles: 20 pictures a second in
place of 30. Tornado recommends `set_nodelay` for web sockets that answer a user; jupyter_server 2 does not call it.
jupyter-config/jupyter_server_config.d/posviz.json turns this extension on wherever posviz is installed.
"""


def _jupyter_server_extension_points():
    return [{"module": "posviz.server"}]


def _load_jupyter_server_extension(server):
    """Make the web sockets to this server's kernels prompt; jupyter_server calls it with its ServerApp."""
    settings, key = server.web_app.settings, "kernel_websocket_connection_class"

    class Prompt(settings[key]):
        def connect(self):
            self.websocket_handler.set_nodelay(True)
            return super().connect()

    settings[key] = Prompt
