"""Chromium over pages that lie on the disk: served from the loopback, everything else refused and noted."""

import contextlib
import functools
import http.server
import os
import threading

from playwright.sync_api import sync_playwright

import browser
import pages

EVERY_CHAPTER = bool(os.environ.get("EVERY_CHAPTER"))
CHAPTERS = [path.stem for path in pages.CHAPTERS]
SAMPLE = CHAPTERS if EVERY_CHAPTER else ["05_rope"]
AXE = {"resultTypes": ["violations"], "preload": False}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@contextlib.contextmanager
def served(folder):
    """The URL under which the files of `folder` are served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Visitor:
    """A page of Chromium that may reach `url` only; `complaints` is what went wrong in it."""

    def __init__(self, chromium, url, **settings):
        self.url, self.complaints = url, []
        self.page = chromium.new_page(**settings)
        self.page.set_default_timeout(30_000)
        self.page.route("**/*", self._gate)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on(
            "console", lambda message: message.type in ("error", "warning") and self.complaints.append(message.text)
        )
        self.page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        self.page.on(
            "response", lambda answer: answer.status >= 400 and self.complaints.append(f"{answer.status}: {answer.url}")
        )

    def _gate(self, route):
        if route.request.url.startswith((self.url, "data:")):
            route.continue_()
        else:
            self.complaints.append(f"asks another host: {route.request.url}")
            route.abort()

    def open(self, name):
        answer = self.page.goto(f"{self.url}/{name}", wait_until="load")
        assert answer.ok, f"{answer.status} for {name}"
        return self.page

    def grave_problems(self):
        """What axe-core finds in the open page and calls serious or critical: (rule, some places)."""
        return [found[1:] for found in self.problems() if found[0] in ("serious", "critical")]

    def problems(self):
        """All that axe-core finds in the open page: (how grave, rule, some places)."""
        axe = pages.shipped("axe_playwright_python", "axe.min.js").read_text(encoding="utf-8")
        self.page.evaluate(axe)
        found = self.page.evaluate("options => axe.run(options)", AXE)["violations"]
        return [
            (problem["impact"], problem["id"], [node["html"][:150] for node in problem["nodes"][:3]])
            for problem in found
        ]


@contextlib.contextmanager
def visiting(folder, **settings):
    """A Visitor of the pages in `folder`."""
    path = browser.chromium()
    with served(folder) as url, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=browser.FLAGS)
        yield Visitor(chromium, url, **settings)
        chromium.close()
