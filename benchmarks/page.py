"""What the page costs its reader: a browser without a GPU shows 5,000 nodes with 40,000 devices.

Goals: first picture 1.5 s after the address is opened, page and data 200 KB compressed, a picture
while moving and zooming 50 ms (95th percentile, from the wheel to the end of the frame), 3,000
elements, 120 MB of heap. The fleet is invented, and served by a server of the standard library:
these are figures of the browser. What the server of the page costs is in its own benchmarks.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

import dev
from tests.web.browser.contract_server import ContractServer, fleet_of
from tests.web.browser.driving import chromium, wait_for_picture

NODES, PENDING = 5000, 400
LOADS = 5
SIZES = ((1280, 800), (1920, 1080))

# One step of the wheel or of a drag, timed until the frame that shows it is drawn.
MOVE = (Path(__file__).parent / "_page_moves.js").read_text()

LOADED = (Path(__file__).parent / "_page_loaded.js").read_text()


def main() -> None:
    """Print what loading and moving cost."""
    dev.ensure_chromium()
    server = ContractServer(fleet_of(NODES, pending=PENDING))
    try:
        with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as browser:
            for width, height in SIZES:
                _measure(browser, server.url, width, height)
    finally:
        server.stop()


def _measure(browser: Browser, url: str, width: int, height: int) -> None:
    pictures = []
    for _ in range(LOADS):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(url)
        wait_for_picture(page)
        loaded: dict[str, Any] = page.evaluate(LOADED)
        pictures.append(loaded["picture"])
        if len(pictures) < LOADS:
            page.close()
    print(
        f"{width} x {height}: first picture {statistics.median(pictures):.0f} ms "
        f"(of {LOADS}: {min(pictures):.0f} to {max(pictures):.0f}), "
        f"{loaded['all'] / 1000:.0f} KB compressed, of them data {loaded['data'] / 1000:.0f} KB, "
        f"{loaded['files']} files",
        flush=True,
    )
    moved = page.evaluate(MOVE, [3])
    print(
        f"  {len(moved['waits'])} steps of moving and zooming: {_spread(moved['waits'])} to the "
        f"end of the frame, {_spread(moved['draws'])} of them drawing; at most "
        f"{moved['cells']:,} cells, {moved['texts']:,} texts",
        flush=True,
    )
    page.get_by_role("button", name="Table").click()
    page.get_by_role("table", name="Devices of the fleet").wait_for()
    elements = page.evaluate("document.querySelectorAll('*').length")
    print(
        f"  {loaded['elements']} elements with the map, {elements} with the table; "
        f"heap {_heap_bytes(page) / 1e6:.0f} MB"
    )
    page.close()


def _spread(values: list[float]) -> str:
    ordered = sorted(values)
    slow = ordered[len(ordered) * 95 // 100]
    return f"median {statistics.median(ordered):.0f} ms, p95 {slow:.0f} ms"


def _heap_bytes(page: Page) -> float:
    """Return the bytes of live objects of the page, its columns and elements among them."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    parts = ("usedSize", "embedderHeapUsedSize", "backingStorageSize")
    return float(sum(usage.get(part, 0) for part in parts))
