"""What the page looks like, compared with recorded pictures; and rules of accessibility."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser.conftest import Open, picture_of
from tests.web.browser.contract_server import ContractServer
from tests.web.browser.driving import wait_for_picture

# Letters may fall on other pixels in another Chromium; areas may not.
SHARE_MAX = 0.02
DIFFERENT = 60  # of 255, in any channel

COMPARE = (Path(__file__).parent / "compare.js").read_text()

VIEWS = {
    "small-light": ("light", ""),
    "small-dark": ("dark", ""),
    "question": ("light", "#pod=default/wait-0"),
    "drained": ("dark", "#whatif=drain+node-0"),
    "shapes-near": ("light", "#cam=3,2,100"),
    "table": ("light", "#view=table"),
}


def share_of_difference(browser: Browser, one: bytes, other: bytes) -> float:
    """Return the share of pixels that differ, computed by the browser."""
    page = browser.new_page()
    try:
        texts = [base64.b64encode(each).decode() for each in (one, other)]
        return float(page.evaluate(COMPARE, [*texts, DIFFERENT]))
    finally:
        page.close()


def picture(page: Page, place: str) -> bytes:
    """Return a picture of a part of the page, once it shows what it will show."""
    page.wait_for_timeout(150)
    return page.locator(place).screenshot(animations="disabled", caret="hide")


def compare(browser: Browser, name: str, found: bytes) -> None:
    """Fail if a picture differs from the recorded one; record it if there is none."""
    recorded = picture_of(name)
    if not recorded.exists():
        recorded.write_bytes(found)
        pytest.fail(f"{recorded.name} is new: look at it, and add it")
    share = share_of_difference(browser, recorded.read_bytes(), found)
    if share > SHARE_MAX:
        picture_of(f"{name}.found").write_bytes(found)
        pytest.fail(f"{share:.1%} of {recorded.name} differ; see {name}.found.png")


@pytest.mark.parametrize("name", VIEWS)
def test_page_looks_as_recorded(
    name: str, small: ContractServer, browser: Browser, open_page: Open
) -> None:
    scheme, fragment = VIEWS[name]
    page = open_page(small.url + fragment, width=1100, height=560, scheme=scheme)
    if name == "table":
        expect(page.get_by_role("table", name="Devices of the fleet")).to_be_visible()
    else:
        wait_for_picture(page)
    if name == "question":
        expect(page.get_by_role("button", name="would do by itself")).to_be_visible()
    if name == "drained":
        expect(page.get_by_role("button", name="would be taken")).to_be_visible()
    compare(browser, name, picture(page, ".middle"))


def test_comparison_notices_a_change(
    small: ContractServer, browser: Browser, open_page: Open
) -> None:
    page = open_page(f"{small.url}#whatif=drain+node-0", width=1100, height=560)
    expect(page.get_by_role("button", name="would be taken")).to_be_visible()
    changed = share_of_difference(
        browser, picture_of("small-light").read_bytes(), picture(page, ".middle")
    )
    assert changed > SHARE_MAX


def test_forty_thousand_devices_look_as_recorded(
    huge: ContractServer, browser: Browser, open_page: Open
) -> None:
    page = open_page(huge.url, width=1100, height=560)
    wait_for_picture(page)
    compare(browser, "huge", picture(page, ".middle"))


# --- rules of accessibility -------------------------------------------------------------------

# What a reader of the page without eyes or without a mouse needs; each rule returns its offenders.
RULES = (Path(__file__).parent / "rules.js").read_text()


@pytest.mark.parametrize(
    "fragment",
    [
        "",
        "#view=table&sel=node:node-0",
        "#pod=default/wait-0&sel=device:gpu.example.com/node-0/gpu-0",
        "#play=cel&sel=claim:default/train-0-0-gpu",
        "#play=what-if&whatif=drain+node-0&sel=pod:default/train-0-0",
        "#play=time&at=950",
    ],
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rules_of_accessibility(
    fragment: str, scheme: str, small: ContractServer, open_page: Open
) -> None:
    page = open_page(small.url + fragment, hint=True, scheme=scheme)
    expect(page.get_by_role("heading", name="Pending")).to_be_visible()
    page.wait_for_timeout(100)
    offenders: dict[str, Any] = page.evaluate(RULES)
    assert {rule: found for rule, found in offenders.items() if found} == {}


def test_rules_find_what_breaks_them(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    page.evaluate(
        """() => {
          const bad = document.createElement("ul");
          bad.innerHTML =
            "<b>b</b><button id='x'></button><p id='x' tabindex='3' aria-controls='y'>a</p>";
          document.querySelector("main").append(bad);
          bad.firstChild.style.color = "rgb(150, 150, 150)";
        }"""
    )
    offenders = {rule for rule, found in page.evaluate(RULES).items() if found}
    assert offenders >= {
        "text without contrast",
        "controls without a name",
        "ids used twice",
        "references to nothing",
        "positive tabindex",
        "lists with other children",
    }


PLACES = ".page-head, .pending, .toolbar, .inspector, .play, canvas"


def test_tab_goes_through_the_page_in_order(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    places = []
    for _ in range(24):
        page.keyboard.press("Tab")
        places.append(
            page.evaluate(f"document.activeElement.closest('{PLACES}')?.className || 'canvas'")
        )
    order = [place.split()[-1] for place in dict.fromkeys(places)]
    assert order[:5] == ["page-head", "pending", "toolbar", "canvas", "inspector"]


def test_focus_is_seen_everywhere(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#play=what-if&sel=node:node-0&pod=default/wait-0")
    wait_for_picture(page)
    expect(page.get_by_text("constraint matchAttribute numaNode")).to_be_visible()
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                """() => {
                  const at = document.activeElement;
                  const { outlineStyle, outlineWidth } = getComputedStyle(at);
                  const isSeen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
                  return isSeen || at === document.body ? "" : at.outerHTML.slice(0, 100);
                }"""
            )
        )
    assert [each for each in seen if each] == []


def test_print_shows_everything_on_white(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#pod=default/wait-0", scheme="dark")
    wait_for_picture(page)
    page.emulate_media(media="print")
    expect(page.get_by_role("combobox", name="Find")).to_be_hidden()
    expect(page.get_by_text("constraint matchAttribute numaNode")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    box = page.locator("canvas").bounding_box()
    assert box is not None
    assert box["height"] > 200
    corner = "document.querySelector('canvas').getContext('2d').getImageData(2, 2, 1, 1).data[0]"
    assert page.evaluate(corner) > 200  # no dark map on paper
    offenders = page.evaluate(RULES)
    assert offenders["text without contrast"] == []
