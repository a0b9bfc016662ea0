"""Chromium, driven by the DevTools protocol over a pipe: https://chromedevtools.github.io/devtools-protocol/.

with Browser(profile_folder) as browser:
    browser.open(path, width=400, dark=True)
    browser.evaluate("document.documentElement.scrollWidth")
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""The browser; ``None`` where it is not installed."""

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--hide-scrollbars"),
)


class Browser:
    """One page of a headless browser.

    Attributes:
        complaints: errors and warnings of the page's console, and uncaught exceptions.
    """

    def __init__(self, profile: Path, timeout: float = 120.0) -> None:
        assert CHROMIUM is not None
        self.complaints: list[str] = []
        self._loaded = False
        self._timeout = timeout
        self._number = 0
        self._buffer = b""
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        # The browser reads commands from descriptor 3 and writes to 4; sh takes no descriptors above 9.
        script = f'exec "$@" 3<&{commands} 4>&{answers}'
        arguments = ["bash", "-c", script, "bash", CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(arguments, pass_fds=(commands, answers), stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self._session = ""
        try:
            target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
            self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                self._call(f"{domain}.enable")
        except BaseException:
            self._end()
            raise

    def open(self, path: Path, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Loads a page, and waits until it has drawn its plots."""
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._loaded = False
        self._call("Page.navigate", {"url": path.as_uri()})
        while not self._loaded:
            self._read()
        self.wait_until("document.documentElement.dataset.drawn !== undefined")

    def resize(self, width: int, height: int = 900) -> None:
        """Sizes below a window's least are the screen's of a device."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", metrics)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited if it is a promise."""
        wanted = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        found = self._call("Runtime.evaluate", wanted)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_until(self, condition: str) -> None:
        """Waits for a JavaScript condition."""
        end = time.monotonic() + self._timeout
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"not within {self._timeout} s: {condition}"
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        found = self._call("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        try:
            if self._process.poll() is None:
                self._session = ""
                self._call("Browser.close")
            self._process.wait(10)
        finally:
            self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, method: str, parameters: dict[str, object] | None = None) -> dict[str, Any]:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters or {}}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                found: dict[str, Any] = answer["result"]
                return found

    def _read(self) -> dict[str, Any]:
        """The next message; events are noted."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], self._timeout)
            assert ready, f"the browser did not answer within {self._timeout} s"
            part = os.read(self._answers, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        event, parameters = message.get("method"), message.get("params", {})
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.complaints.append(str(parameters["entry"]["text"]))
        elif event == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"]))
        return message
