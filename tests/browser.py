"""JupyterLab and Chromium for the browser tests, both apart from the settings of whoever runs them."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"autoStartDefaultKernel": False},
}
FOLDERS = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "IPYTHONDIR",
)
OPTIONS = (
    "--no-browser",
    "--allow-root",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port_retries=0",
    "--IdentityProvider.token=",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.extension_manager=readonly",
)


def chromium():
    """The path of an installed Chromium. Without one the test is skipped, or fails where CI is set."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    message = "the browser tests need Chromium: install the package chromium (Debian, Ubuntu: apt install chromium)"
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@contextlib.contextmanager
def server(root, home, *options, base=""):
    """A JupyterLab over the folder `root` on a free loopback port, all its settings under `home`; yields its URL.

    It has the server extension of posviz. `base` is the path under which a hub's proxy would show it, as "/user/ada".
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}{base}"
    command = [
        sys.executable,
        "-m",
        "jupyter",
        "lab",
        *OPTIONS,
        *options,
        f"--ServerApp.base_url={base}/",
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={root}",
    ]
    env = _settings_under(home)
    with open(home / "server.log", "w+") as log:
        process = subprocess.Popen(command, env=env, cwd=root, stdout=log, stderr=log)
        try:
            wait_until_it_answers(process, f"{url}/api/status", log)
            yield url
        finally:
            stop(process)


def _settings_under(home):
    """Environment variables for a JupyterLab whose settings are SETTINGS, in folders of `home`."""
    env = dict(os.environ, HOME=str(home)) | {name: str(home / name.lower()) for name in FOLDERS}
    config = Path(__file__).parent.parent / "jupyter-config/jupyter_server_config.d"
    shutil.copytree(config, home / "jupyter_config_dir/jupyter_server_config.d", dirs_exist_ok=True)
    for name, values in SETTINGS.items():
        file = home / "jupyterlab_settings_dir" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    return env


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def stop(process):
    process.terminate()  # a server shuts its kernels down first
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until_it_answers(process, url, log):
    """Until `process`, a server, answers at `url`; RuntimeError with its `log` if it ends or takes a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.1)
    log.seek(0)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read()}")
