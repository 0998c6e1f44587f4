"""Open the page, and ask at once why a pod waits: `python -m benchmarks._page_look LINK`.

Prints the seconds until the fleet is shown, and those until the first explanation is there.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.web.browser.driving import chromium, wait_for_picture


def main(address: str) -> None:
    """Print both times."""
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        began_s = time.perf_counter()
        page.goto(address)
        wait_for_picture(page)
        shown_s = time.perf_counter()
        page.locator(".group-head").first.click()
        page.locator(".funnel").first.wait_for()
        print(shown_s - began_s, time.perf_counter() - shown_s)


if __name__ == "__main__":
    main(sys.argv[1])
