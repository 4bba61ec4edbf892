"""A real browser for the tests: headless Chromium over its DevTools protocol, on a pipe, with nothing installed for Python."""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# The browser reads commands from descriptor 3 and answers on 4.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
PATIENCE = 60.0  # seconds for one answer: a first start on a busy machine takes some


def find_browser() -> str | None:
    """The program named by CHROMIUM, or the first that is installed."""
    named = os.environ.get("CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


def start_or_skip(folder: Path) -> "Browser":
    """A browser with its profile in the folder; where there is none that starts, the tests that need it are skipped."""
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed; install it (apt package chromium), or name one in CHROMIUM")
    try:
        return Browser(program, folder)
    except (OSError, RuntimeError, TimeoutError) as error:
        pytest.skip(f"{program} is installed and does not start here: {error}")


class Browser:
    """A running browser; a context manager that ends it."""

    def __init__(self, program: str, folder: Path):
        commands, answers = os.pipe(), os.pipe()
        inner = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (commands[0], answers[1])]
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *FLAGS, *sandbox, f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, inner), *command],
            pass_fds=inner,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (*inner, commands[0], answers[1]):
            os.close(fd)
        self.write, self.read = commands[1], answers[0]
        self.pending, self.numbers = b"", itertools.count(1)
        self.events: list[dict[str, Any]] = []
        try:
            self.call("Browser.getVersion")
        except (OSError, RuntimeError, TimeoutError):
            self.close()
            raise

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object):
        self.close()

    def close(self):
        """End the browser, by force if it does not listen."""
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write)
        os.close(self.read)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are kept."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(time.monotonic() + PATIENCE, method)
            if answer.get("id") != number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def wait_for(self, event: str, session: str):
        """Wait until an event of a session has come."""
        deadline = time.monotonic() + PATIENCE
        while not any(e.get("method") == event and e.get("sessionId") == session for e in self.events):
            self.events.append(self._next(deadline, event))

    def _next(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self.pending:
            ready, _, _ = select.select([self.read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the browser did not answer {what}")
            part = os.read(self.read, 1 << 16)
            if not part:
                raise RuntimeError(f"the browser ended before it answered {what}")
            self.pending += part
        message, _, self.pending = self.pending.partition(b"\0")
        return json.loads(message)


class Page:
    """A file opened in a new tab of a given size."""

    def __init__(self, browser: Browser, file: Path, width: int = 1280, height: int = 900, *, dark=False, script=True):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Page.navigate", url=file.resolve().as_uri())
        browser.wait_for("Page.loadEventFired", self.session)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command to this tab."""
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def events(self, method: str) -> list[dict[str, Any]]:
        """What this tab has reported so far."""
        mine = (event for event in self.browser.events if event.get("sessionId") == self.session)
        return [event["params"] for event in mine if event["method"] == method]

    def complaints(self) -> list[Any]:
        """Uncaught exceptions, console errors and warnings, and entries of the browser's log."""
        console = [e for e in self.events("Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")]
        return [*self.events("Runtime.exceptionThrown"), *console, *self.events("Log.entryAdded")]

    def requests(self) -> list[str]:
        """The addresses that the page asked for, but those that hold their data themselves."""
        urls = [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]
        return [url for url in urls if not url.startswith("data:")]

    def move(self, x: float, y: float):
        """Move the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float):
        """Press and release the button."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def close(self):
        """Close the tab."""
        target = self.browser.call("Target.getTargetInfo", self.session)["targetInfo"]["targetId"]
        self.browser.call("Target.closeTarget", targetId=target)

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"])
