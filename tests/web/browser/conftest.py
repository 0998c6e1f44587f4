"""A browser for each module, and the invented fleets.

Playwright keeps an event loop in its thread: a browser must be gone before tests of other modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import dev
from tests.web.browser.contract_server import ContractServer, fleet_of
from tests.web.browser.driving import chromium

Open = Callable[..., Page]
WAIT_MS = 30_000  # of a busy machine
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a Chromium."""
    if not dev.chromium_program().exists():
        pytest.skip("no Chromium in .tools: `python3 dev.py test` unpacks Debian's")
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture(scope="module")
def contexts(browser: Browser) -> Callable[..., BrowserContext]:
    """Return what gives a window of a size and scheme, the same for all tests of a module."""
    known: dict[tuple[object, ...], BrowserContext] = {}

    def context(width: int, height: int, scheme: str) -> BrowserContext:
        found = known.get((width, height, scheme))
        if found is None:
            found = known[width, height, scheme] = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
            )
            found.set_default_timeout(WAIT_MS)
        return found

    return context


@pytest.fixture
def open_page(contexts: Callable[..., BrowserContext]) -> Iterator[Open]:
    """Return a function that opens a page and fails if it reports an error.

    The hint of the first visit is not shown, unless asked for.
    """
    faults: list[str] = []
    pages: list[Page] = []

    def opened(
        url: str, *, width: int = 1280, height: int = 800, scheme: str = "light", hint: bool = False
    ) -> Page:
        page = contexts(width, height, scheme).new_page()
        pages.append(page)
        if not hint:
            page.add_init_script("localStorage.setItem('moor.hint', 'seen')")
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(url)
        return page

    yield opened
    for page in pages:
        page.close()
    assert not faults


@pytest.fixture
def small() -> Iterator[ContractServer]:
    """Return a server of four nodes and three pending pods."""
    yield from served(ContractServer(fleet_of(4)))


@pytest.fixture(scope="module")
def huge() -> Iterator[ContractServer]:
    """Return a server of 5,000 nodes with 40,000 devices."""
    yield from served(ContractServer(fleet_of(5000, pending=40)))


def served(server: ContractServer) -> Iterator[ContractServer]:
    """Stop a server after use."""
    try:
        yield server
    finally:
        server.stop()


def picture_of(name: str) -> Path:
    """Return where a recorded picture is."""
    return Path(__file__).parent / "pictures" / f"{name}.png"
