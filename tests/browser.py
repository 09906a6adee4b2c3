"""Headless Chromium: a page as it leaves it after its scripts have run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def rendered(page: Path, query: str = "", width: int = 1200) -> str:
    """The HTML of a local page (query: "?..." behind its address) in a window of that width."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "pages are checked in Chromium, which is not here: apt-get install chromium"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
               f"--user-data-dir={page.parent / 'profile'}", "--dump-dom", f"{page.as_uri()}{query}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
