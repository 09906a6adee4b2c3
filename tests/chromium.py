"""One headless Chromium for many pages, over its DevTools pipe: widths, dark mode, scripts, pictures, and axe-core.

    with Chromium() as browser:
        browser.open(page, width=390)
        assert browser.violations() == []
"""

from __future__ import annotations

import base64
import fcntl
import json
import lzma
import os
import select
import shutil
import subprocess
import tempfile
import time
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Self

AXE = Path(__file__).parent / "data" / "axe.min.js.xz"  # tests/data/axe.md
_RUN_AXE = """
axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations.flatMap(rule =>
    rule.nodes.map(node => `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary}`)))
"""


@cache
def _axe() -> str:
    return lzma.decompress(AXE.read_bytes()).decode()


class Chromium:
    """A browser with one tab. Its profile is a folder that is removed at the end."""

    def __init__(self) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        assert program, "pages are checked in Chromium, which is not here: apt-get install chromium"
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        (theirs, self._commands), (self._answers, written) = os.pipe(), os.pipe()
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}", "about:blank"]  # fmt: skip
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs, written)]
        self._process = subprocess.Popen(  # it reads commands from 3 and writes answers to 4
            ["bash", "-c", 'exec "${@:3}" 3<&$1 4>&$2', "bash", *map(str, high), *command], pass_fds=high,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (theirs, written, *high):
            os.close(end)
        self._numbers, self._unread, self._session = count(1), b"", ""
        self._events: set[str] = set()  # that came since the last navigation
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        self._profile.cleanup()

    def open(self, page: Path | str, width: int = 1200, *, dark: bool = False) -> None:
        """Load a file or an address in a window of that width, and wait for its scripts."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self._call("Emulation.setEmulatedMedia", features=[scheme, still])
        address = page.resolve().as_uri() if isinstance(page, Path) else page
        for url in ("about:blank", address):  # blank: no page is kept
            self._events.clear()
            self._call("Page.navigate", url=url)
            while "Page.loadEventFired" not in self._events:
                assert self._next() is not None, f"Chromium closed the pipe while it opened {url}"

    def run(self, script: str) -> Any:
        """The value of an expression, of what its promise gives."""
        done = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def violations(self) -> list[str]:
        """What axe-core, with all its rules, finds in the page that is open: "RULE: ELEMENT: WHAT TO DO"."""
        self.run(_axe() + "\n;0")
        found: list[str] = self.run(_RUN_AXE)
        return found

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        width: int = self.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return width

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Write what the window shows, or the whole page, as PNG."""
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **(
            {"clip": {"x": 0, "y": 0, "scale": 1, **self.run(
                "({width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight})"
            )}} if whole else {}
        ))  # fmt: skip
        file.write_bytes(base64.b64decode(data["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data):]
        while (answer := self._next()) is not None:
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
        raise AssertionError(f"Chromium closed the pipe at {method}")

    def _next(self) -> dict[str, Any] | None:
        """The next answer or event; None: there is none any more."""
        end = time.monotonic() + 120
        while b"\0" not in self._unread:
            assert select.select([self._answers], [], [], max(0, end - time.monotonic()))[0], "Chromium does not answer"
            data = os.read(self._answers, 1 << 20)
            if not data:
                return None
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self._events.add(message["method"])
        return message
