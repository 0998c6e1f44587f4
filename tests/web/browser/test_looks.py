"""What the page looks like, compared with recorded pictures; and rules of accessibility."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser.conftest import Open, picture_of
from tests.web.browser.contract_server import ContractServer
from tests.web.browser.driving import wait_for_picture

# Letters may fall on other pixels in another Chromium; areas may not.
SHARE_MAX = 0.02
DIFFERENT = 60  # of 255, in any channel

COMPARE = """async ([one, other, different]) => {
  const [a, b] = await Promise.all([one, other].map(async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, image.width, image.height);
  }));
  if (a.width !== b.width || a.height !== b.height) return 1;
  let count = 0;
  for (let i = 0; i < a.data.length; i += 4) {
    const most = Math.max(...[0, 1, 2].map((c) => Math.abs(a.data[i + c] - b.data[i + c])));
    if (most > different) count++;
  }
  return count / (a.data.length / 4);
}"""

VIEWS = {
    "small-light": ("light", ""),
    "small-dark": ("dark", ""),
    "question": ("light", "#pod=default/wait-0"),
    "drained": ("dark", "#whatif=drain+node-0"),
    "shapes-near": ("light", "#cam=0,0,100"),
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
        expect(page.get_by_role("button", name="would do")).to_be_visible()
    if name == "drained":
        expect(page.get_by_role("button", name="would be taken")).to_be_visible()
    compare(browser, name, picture(page, ".middle"))


def test_comparison_notices_a_change(small: ContractServer, browser: Browser, open_page: Open) -> None:
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
RULES = """() => {
  const text = (each) => (each?.textContent ?? "").trim();
  const nameOf = (each) =>
    each.getAttribute("aria-label") ||
    (each.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => text(document.getElementById(id))).join("") ||
    [...(each.labels ?? [])].map(text).join("") ||
    (["INPUT", "SELECT", "TEXTAREA"].includes(each.tagName) ? each.title : text(each) || each.title);
  const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility());
  const shown = (list) => list.map((each) => each.outerHTML.slice(0, 120));
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  const references = ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant", "for"];
  const isSmall = (each) => {
    const box = each.getBoundingClientRect();
    return !each.classList.contains("link") && each.type !== "range" && (box.width < 20 || box.height < 20);
  };
  return {
    "controls without a name": shown(all("button, input, select, textarea, a[href], [role=button], canvas, dialog, section").filter((each) => !nameOf(each))),
    "ids used twice": ids.filter((id, i) => ids.indexOf(id) !== i),
    "references to nothing": references.flatMap((name) => all(`[${name}]`).flatMap((each) => each.getAttribute(name).split(" ").filter((id) => id && !document.getElementById(id)))),
    "positive tabindex": shown(all("[tabindex]").filter((each) => each.tabIndex > 0)),
    "clickable but not a control": shown(all("div[onclick], span[onclick]")),
    "small targets": shown(all("button, select, input").filter(isSmall)),
    "lists with other children": shown(all("ul, ol").filter((each) => [...each.children].some((child) => child.tagName !== "LI"))),
    "tables without a heading": shown(all("table").filter((each) => !each.querySelector("th"))),
    "wider than the window": document.documentElement.scrollWidth > innerWidth ? ["page"] : [],
    "no language": document.documentElement.lang ? [] : ["html"],
    "no title": document.title ? [] : ["title"],
  };
}"""


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
def test_rules_of_accessibility(fragment: str, small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url + fragment, hint=True)
    expect(page.get_by_role("heading", name="Pending")).to_be_visible()
    page.wait_for_timeout(100)
    offenders: dict[str, Any] = page.evaluate(RULES)
    assert {rule: found for rule, found in offenders.items() if found} == {}


def test_tab_goes_through_the_page_in_order(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    places = []
    for _ in range(24):
        page.keyboard.press("Tab")
        places.append(
            page.evaluate(
                "document.activeElement.closest('.page-head, .pending, .toolbar, .inspector, .play, canvas')?.className || 'canvas'"
            )
        )
    order = [place.split()[-1] for place in dict.fromkeys(places)]
    assert order[:5] == ["page-head", "pending", "toolbar", "canvas", "inspector"]


def test_print_shows_everything_on_white(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#pod=default/wait-0", scheme="dark")
    wait_for_picture(page)
    page.emulate_media(media="print")
    expect(page.get_by_role("combobox", name="Find")).to_be_hidden()
    expect(page.get_by_text("constraint matchAttribute numaNode")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
