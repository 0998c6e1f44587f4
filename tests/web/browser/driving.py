"""Start the Chromium that dev.py unpacked, with fonts of its own so that pictures are the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import dev

FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <match target="pattern">
    <test name="family" compare="eq"><string>system-ui</string></test>
    <edit name="family" mode="assign" binding="strong"><string>Inter</string></edit>
  </match>
  <alias><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <alias><family>ui-monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""
# Our tests run as root in containers, where Chromium's own sandbox does not start.
FLAGS = ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Run a Chromium; `folder` is for its list of fonts."""
    fonts = folder / "fonts.conf"
    fonts.write_text(FONTS.format(fonts=dev.CHROMIUM / "usr/share/fonts", cache=folder / "fonts"))
    libraries = list((dev.CHROMIUM / "usr" / "lib").glob("*-linux-gnu*"))
    libraries += [path / "pulseaudio" for path in libraries]
    libraries += (dev.CHROMIUM / "lib").glob("*-linux-gnu*")
    environment: dict[str, str | float | bool] = {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "FONTCONFIG_FILE": str(fonts),
        "TZ": "UTC",
    }
    with sync_playwright() as playwright:
        program = str(dev.chromium_program())
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS, env=environment)
        try:
            yield browser
        finally:
            browser.close()


def wait_for_picture(page: Page) -> None:
    """Return once the map has been drawn."""
    page.wait_for_selector("canvas[data-drawn]", timeout=30_000)
