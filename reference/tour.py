"""Records the tour of the page: `python -m reference.tour` writes docs/pictures/page-tour.gif.

Starts a cluster of simulated machines, runs the example training on it, uses the page as its users
would, and takes a picture after each step. The module writes the GIF itself, without a library: a
palette of the most frequent colours, and for each picture the rectangle that changed.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page

import dev
from tests.apiserver.programs import find_kubectl
from tests.web.browser.driving import chromium, wait_for_picture

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "pictures" / "page-tour.gif"
WIDTH, PAGE_HEIGHT, CAPTION_HEIGHT = 960, 640, 44
HEIGHT = PAGE_HEIGHT + CAPTION_HEIGHT
SECONDS = 3.2
COLOURS = 128
WAIT_MS = 60_000
EXPRESSION = (
    'device.driver == "gpu.nvidia.com" && device.attributes["resource.kubernetes.io"].numaNode == 1'
)

# Returns the pixels of a PNG with a caption below it; Chromium decodes it.
DECODE = (Path(__file__).parent / "tour_pixels.js").read_text()


class Frame(NamedTuple):
    """A picture as rows of pixels, each a number of four bytes."""

    pixels: memoryview


def main() -> None:
    """Record the tour and write it."""
    dev.ensure_chromium()
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster(Path(folder)) as (link, scale),
        chromium(Path(folder)) as browser,
    ):
        page = browser.new_page(
            viewport={"width": WIDTH, "height": PAGE_HEIGHT}, device_scale_factor=1
        )
        page.add_init_script("localStorage.setItem('moor.hint', 'seen')")
        page.set_default_timeout(WAIT_MS)
        page.goto(link)
        wait_for_picture(page)
        scale(9)
        pictures = list(tour(page))
        page.goto("about:blank")
        frames = [decoded(page, *each) for each in pictures]
    TARGET.write_bytes(gif(frames))
    print(
        f"{TARGET.relative_to(ROOT)}: {len(frames)} pictures, {TARGET.stat().st_size / 1000:.0f} KB"
    )


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Run a cluster with the example training; return a link to its page and what scales it."""
    place = ("--data-dir", "moorage-data")
    environment = {**os.environ, "KUBECONFIG": str(folder / "moorage-data" / "kubeconfig")}

    def run(*command: str) -> str:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    moor = (sys.executable, "-m", "moorage.cli.main")
    kubectl = str(find_kubectl())

    def scale(replicas: int) -> None:
        run(kubectl, "scale", "deployment", "training", f"--replicas={replicas}")

    run(*moor, "up", *place, "--port", "0", "--profile", "dgx-h100=4", "--detach")
    try:
        run(kubectl, "apply", "-f", str(ROOT / "examples" / "training"))
        scale(7)
        run(kubectl, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s")
        (link,) = re.findall(r"http://\S+", run(*moor, "ui", *place))
        yield link, scale
    finally:
        run(*moor, "down", *place)


def decoded(page: Page, png: str, words: str) -> Frame:
    """Return the pixels of a picture and of its caption."""
    pixels = page.evaluate(DECODE, [png, words, CAPTION_HEIGHT])
    return Frame(memoryview(base64.b64decode(pixels)).cast("I"))


def tour(page: Page) -> Iterator[tuple[str, str]]:
    """Use the page as its users would; return a picture after each step."""

    def picture(words: str) -> tuple[str, str]:
        page.wait_for_timeout(900)
        png = page.screenshot(animations="disabled", caret="hide")
        return base64.b64encode(png).decode(), words

    page.locator(".group-head").first.wait_for()
    yield picture("Every device of the cluster, and the pods that wait")
    page.locator(".group-head").first.click()
    page.locator(".funnel").first.wait_for()
    yield picture("Why does it wait? Devices are painted by the question that refused them")
    page.locator(".fix", has_text="gets node").first.click()
    page.locator(".outcome").wait_for()
    yield picture("What would help: a fix, previewed as a plan")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Find").fill("dgx-h100-1 gpu-4")
    page.keyboard.press("Enter")
    page.get_by_text("productName").first.wait_for()
    yield picture("Who holds this GPU, and what is beside it?")
    page.evaluate("location.hash = 'sel=node:dgx-h100-1&whatif=drain+dgx-h100-1&play=what-if'")
    page.locator(".outcome").wait_for()
    yield picture("What would draining a node evict?")
    page.evaluate(
        "text => { location.hash = `play=cel&${new URLSearchParams({cel: text})}`; }", EXPRESSION
    )
    page.get_by_role("button", name="yes").wait_for()
    yield picture("Which devices does an expression select, and which part says no?")
    page.evaluate("location.hash = 'play=time'")
    page.get_by_role("button", name=re.compile("Pending Pod")).last.click()
    page.get_by_text("You look at").wait_for()
    yield picture("When did it begin? Every moment can be looked at again")


# --- GIF ----------------------------------------------------------------------------------------


def gif(frames: list[Frame]) -> bytes:
    """Return pictures as an animation that repeats."""
    counts = Counter(pixel for frame in frames for pixel in frame.pixels)
    # Colours of devices are rarer than greys of letters, but more important.
    weights = Counter({pixel: count * (1 + saturation(pixel)) for pixel, count in counts.items()})
    palette = [pixel for pixel, _ in weights.most_common(COLOURS)]
    numbers = {pixel: nearest(pixel, palette) for pixel in counts}
    bits = (COLOURS - 1).bit_length()
    table = b"".join(pixel.to_bytes(4, "little")[:3] for pixel in palette).ljust(3 << bits, b"\0")
    parts = [
        b"GIF89a" + _shorts(WIDTH, HEIGHT) + bytes([0xF0 | (bits - 1), 0, 0]) + table,
        b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0",
    ]
    before: bytes | None = None
    for frame in frames:
        indexes = bytes(numbers[pixel] for pixel in frame.pixels)
        parts.append(_picture(indexes, before, bits))
        before = indexes
    return b"".join(parts) + b"\x3b"


def saturation(pixel: int) -> int:
    """Return the distance of a pixel from grey, up to 255."""
    parts = pixel.to_bytes(4, "little")[:3]
    return max(parts) - min(parts)


def nearest(pixel: int, palette: list[int]) -> int:
    """Return the number of the colour nearest to a pixel."""
    r, g, b, _ = pixel.to_bytes(4, "little")

    def distance(number: int) -> int:
        red, green, blue, _ = palette[number].to_bytes(4, "little")
        return 3 * (r - red) ** 2 + 6 * (g - green) ** 2 + (b - blue) ** 2

    return min(range(len(palette)), key=distance)


def _picture(indexes: bytes, before: bytes | None, bits: int) -> bytes:
    """Return the part of a picture that differs from the one before."""
    left, top, right, bottom = 0, 0, WIDTH, HEIGHT
    if before is not None:
        rows = [y for y in range(HEIGHT) if _row(indexes, y) != _row(before, y)] or [0]
        top, bottom = rows[0], rows[-1] + 1
        columns = [x for x in range(WIDTH) if indexes[x::WIDTH] != before[x::WIDTH]] or [0]
        left, right = columns[0], columns[-1] + 1
    part = b"".join(_row(indexes, y)[left:right] for y in range(top, bottom))
    control = b"\x21\xf9\x04\x04" + _shorts(int(SECONDS * 100)) + b"\0\0"
    place = b"\x2c" + _shorts(left, top, right - left, bottom - top) + b"\0"
    packed = lzw(part, bits)
    blocks = (packed[at : at + 255] for at in range(0, len(packed), 255))
    data = b"".join(bytes([len(block)]) + block for block in blocks)
    return control + place + bytes([bits]) + data + b"\0"


def _row(indexes: bytes, y: int) -> bytes:
    return indexes[y * WIDTH : (y + 1) * WIDTH]


def _shorts(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(2, "little") for number in numbers)


def lzw(indexes: bytes, bits: int) -> bytes:
    """Return numbers compressed as GIF has it: codes that grow from bits + 1 to 12 bits."""
    clear, end = 1 << bits, (1 << bits) + 1
    codes: dict[tuple[int, int], int] = {}
    width, free = bits + 1, end + 1
    packed, waiting, count = bytearray(), clear, width
    code = indexes[0]
    for index in indexes[1:]:
        known = codes.get((code, index))
        if known is not None:
            code = known
            continue
        waiting |= code << count
        count += width
        codes[code, index] = free
        code, free = index, free + 1
        if free > 1 << width:
            width += 1
        if width > 12:
            waiting |= clear << count
            count += 12
            codes, width, free = {}, bits + 1, end + 1
        packed += (waiting & (1 << (count & ~7)) - 1).to_bytes(count >> 3, "little")
        waiting >>= count & ~7
        count &= 7
    waiting |= code << count
    count += width
    waiting |= end << count
    count += width
    return bytes(packed) + waiting.to_bytes((count + 7) // 8, "little")


if __name__ == "__main__":
    main()
