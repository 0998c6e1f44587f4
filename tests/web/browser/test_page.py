"""The page as its users meet it, over an invented fleet."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser.conftest import Open
from tests.web.browser.contract_server import ContractServer, fleet_of
from tests.web.browser.driving import wait_for_picture

WORK = "import('/ui/static/paint.js').then(({work}) => ({...work}))"


def hash_of(page: Page) -> str:
    """Return the fragment, once it is written."""
    page.wait_for_timeout(200)
    return str(page.evaluate("location.hash"))


# --- looking ----------------------------------------------------------------------------------


def test_map_shows_devices_and_the_inspector_the_fleet(
    small: ContractServer, open_page: Open
) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    work = page.evaluate(WORK)
    assert (work["level"], work["cells"]) == ("shapes", 32)
    inspector = page.get_by_role("region", name="Inspector")
    expect(inspector).to_contain_text("gpu.example.com")
    expect(inspector).to_contain_text("Most fragmented")


def test_click_on_a_cell_selects_the_device_and_shows_who_holds_it(
    small: ContractServer, open_page: Open
) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    page.locator("canvas").click(position={"x": 60, "y": 100})
    inspector = page.get_by_role("region", name="Inspector")
    expect(inspector.get_by_role("heading", name="gpu-0")).to_be_visible()
    expect(inspector).to_contain_text("default/train-0-0")
    expect(inspector).to_contain_text("40Gi of 80Gi")
    inspector.get_by_role("button", name="default/train-0-0", exact=True).click()
    expect(inspector.get_by_role("heading", name="train-0-0")).to_be_visible()
    assert "sel=pod:default/train-0-0" in hash_of(page)


def test_search_finds_a_device_by_parts_of_its_name(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    page.keyboard.press("/")
    page.keyboard.type("node-2 gpu-3")
    expect(page.get_by_role("listbox", name="Found").get_by_role("option")).to_have_count(1)
    expect(page.get_by_role("listbox", name="Found")).to_contain_text("free")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="gpu-3")).to_be_visible()


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("node 2", "nodenode-2"),
        ("node-2-gpu-3", "devicegpu.example.com/node-2/gpu-3"),
        ("pod wait 1", "podresearch/wait-1"),
    ],
)
def test_search_knows_kinds_and_parts_of_names(
    text: str, first: str, small: ContractServer, open_page: Open
) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    page.get_by_role("combobox", name="Find").fill(text)
    expect(page.get_by_role("option").first).to_contain_text(first)


def test_arrow_keys_move_the_selection_and_tell_it(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#selected-sentence")).to_have_text(
        "gpu-0 of node-0: allocated, held by default/train-0-0-gpu"
    )
    page.keyboard.press("ArrowRight")
    expect(page.locator("#selected-sentence")).to_contain_text("nic-0 of node-0")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#selected-sentence")).to_contain_text("nic-2 of node-0")


def test_zoom_shows_more_of_less(huge: ContractServer, open_page: Open) -> None:
    page = open_page(huge.url)
    wait_for_picture(page)
    far = page.evaluate(WORK)
    assert (far["level"], far["cells"]) == ("pixels", 40_000)
    assert far["texts"] == 0
    page.locator("canvas").hover(position={"x": 200, "y": 200})
    for _ in range(4):
        page.mouse.wheel(0, -300)
    page.wait_for_function(f"{WORK}.then(work => work.level === 'shapes' && work.texts > 0)")
    near = page.evaluate(WORK)
    assert near["cells"] < 2000
    assert "cam=" in hash_of(page)
    page.get_by_role("button", name="Fit").click()
    page.wait_for_function(f"{WORK}.then(work => work.level === 'pixels')")


def test_forty_thousand_devices_take_few_elements_and_one_picture(
    huge: ContractServer, open_page: Open
) -> None:
    page = open_page(huge.url)
    wait_for_picture(page)
    assert page.evaluate(WORK)["pictures"] <= 3
    assert page.evaluate("document.querySelectorAll('*').length") < 600
    page.get_by_role("button", name="Table").click()
    table = page.get_by_role("table", name="Devices of the fleet")
    expect(table).to_have_attribute("aria-rowcount", "40001")
    page.locator(".table-scroll").evaluate("each => { each.scrollTop = 500_000; }")
    expect(table.locator("tr[aria-rowindex='17860']")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") < 3000


def test_table_sorts_filters_and_selects(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#view=table")
    page.get_by_role("combobox", name="State").select_option("allocated")
    head = page.get_by_role("columnheader", name="Node").get_by_role("button")
    first = page.locator("tbody tr[aria-rowindex='2']")
    head.click()
    expect(first).to_contain_text("node-0")
    head.click()
    expect(first).to_contain_text("node-2")
    expect(page.locator("th[aria-sort='descending']")).to_have_text("Node ↓")
    first.get_by_role("button").click()
    assert "sel=device:" in hash_of(page)


def test_table_says_what_the_map_is_painted_with(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#view=table&pod=default/wait-0")
    table = page.get_by_role("table", name="Devices of the fleet")
    expect(table.get_by_role("columnheader", name="Refused by")).to_be_visible()
    legend = page.get_by_role("group", name="Legend: Which question refused the device")
    legend.get_by_role("button", name="would do by itself").click()
    rows = table.locator("tbody tr:not(.filler)")
    expect(rows.first).to_contain_text("would do by itself")
    count = int(
        legend.get_by_role("button", name="would do by itself").locator("data").inner_text()
    )
    expect(table).to_have_attribute("aria-rowcount", str(count + 1))
    page.keyboard.press("Escape")
    expect(table.get_by_role("columnheader", name="Refused by")).to_have_count(0)


def test_colours_and_legend(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    legend = page.get_by_role("group", name=re.compile("^Legend"))
    expect(legend.get_by_role("button", name="allocated")).to_be_visible()
    page.get_by_role("combobox", name="Colour").select_option("Namespace")
    expect(legend.get_by_role("button", name="research")).to_be_visible()
    legend.get_by_role("button", name="research").click()
    expect(legend.get_by_role("button", name="research")).to_have_attribute("aria-pressed", "true")


def camera(page: Page) -> tuple[float, float, float]:
    """Return what is in the middle of the map, and its scale."""
    found = page.evaluate("new URLSearchParams(location.hash.slice(1)).get('cam')")
    x, y, scale = (float(each) for each in str(found).split(","))
    return x, y, scale


def touch(page: Page, *frames: list[tuple[float, float]]) -> None:
    """Put fingers on the map and move them, from frame to frame."""
    box = page.locator("canvas").bounding_box()
    assert box is not None
    session = page.context.new_cdp_session(page)
    for number, fingers in enumerate([*frames, []]):
        kind = "touchEnd" if not fingers else "touchMove" if number else "touchStart"
        points = [
            {"x": box["x"] + x, "y": box["y"] + y, "id": each}
            for each, (x, y) in enumerate(fingers)
        ]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_one_finger_moves_two_zoom_and_a_tap_selects(
    small: ContractServer, open_page: Open
) -> None:
    page = open_page(f"{small.url}#cam=4,4,40")
    wait_for_picture(page)
    touch(page, [(200.0, 200.0)], [(160.0, 200.0)], [(120.0, 240.0)])
    page.wait_for_function("() => !location.hash.includes('cam=4,4,')")
    assert camera(page) == (6, 3, 40)  # 80 pixels to the left, 40 down
    assert "sel=" not in hash_of(page)
    far = [(100.0, 200.0), (300.0, 200.0)], [(50.0, 200.0), (350.0, 200.0)]
    touch(page, *far, [(0.0, 200.0), (400.0, 200.0)])
    page.wait_for_function("() => !location.hash.includes(',40')")
    box = page.locator("canvas").bounding_box()
    assert box is not None
    x, y, scale = camera(page)
    # Twice as near; what was between the fingers stays there.
    assert scale == 80
    assert x == pytest.approx(6 + (200 - box["width"] / 2) * (1 / 40 - 1 / 80), abs=0.01)
    assert y == pytest.approx(3 + (200 - box["height"] / 2) * (1 / 40 - 1 / 80), abs=0.01)
    page.get_by_role("button", name="Fit").click()
    touch(page, [(60.0, 100.0)])
    expect(page.get_by_role("heading", name="gpu-0")).to_be_visible()


# --- asking -----------------------------------------------------------------------------------


def test_pending_pod_is_explained_and_its_fix_previewed(
    small: ContractServer, open_page: Open
) -> None:
    page = open_page(small.url)
    page.get_by_role("button", name=re.compile("wait-0")).click()
    funnel = page.get_by_role("list", name="Devices left after each question")
    expect(funnel.get_by_role("listitem")).to_have_text(
        ["32in the fleet", "8on the node", "4of the class", "3free", "0together"]
    )
    expect(page.get_by_text("constraint matchAttribute numaNode")).to_be_visible()
    legend = page.get_by_role("group", name="Legend: Which question refused the device")
    expect(legend.get_by_role("button", name="would do by itself")).to_be_visible()
    page.get_by_role("button", name=re.compile("ask for 2 instead of 3")).click()
    expect(page.get_by_role("group", name="Legend: What would change")).to_contain_text(
        "would be taken3"
    )
    expect(page.get_by_text("3 → 4")).to_be_visible()
    assert "whatif=fix+default/wait-0+1" in hash_of(page)
    page.keyboard.press("Escape")
    expect(legend).to_be_visible()


def test_questions_differ_in_more_than_hue(small: ContractServer, open_page: Open) -> None:
    gpus = range(0, 32, 2)
    small.fleet["devices"]["state"][gpus[5]] = 4
    page = open_page(f"{small.url}#pod=default/wait-0")
    legend = page.get_by_role("group", name="Legend: Which question refused the device")
    tainted = legend.get_by_role("button", name="tainted").locator(".swatch")
    expect(tainted).to_have_class("swatch pattern-2")


def test_drain_from_the_inspector_draws_ghosts(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#sel=node:node-0")
    page.get_by_role("button", name="What if it were drained?").click()
    legend = page.get_by_role("group", name="Legend: What would change")
    expect(legend).to_contain_text("would be released3")
    expect(page.get_by_text("node-0 is drained")).to_be_visible()


def test_link_with_changes_does_not_pass_for_the_fleet_as_it_is(
    small: ContractServer, open_page: Open
) -> None:
    page = open_page(f"{small.url}#whatif=drain+node-0")
    banner = page.get_by_role("status").filter(has_text="This is not the fleet as it is")
    expect(banner).to_be_visible()
    banner.get_by_role("button", name="Show them").click()
    expect(page.get_by_label("Changes that are tried")).to_contain_text("drain node-0")
    expect(banner).to_be_hidden()
    page.get_by_role("tab", name="CEL").click()
    banner.get_by_role("button", name="Show the fleet as it is").click()
    expect(banner).to_be_hidden()
    assert "whatif" not in hash_of(page)


def test_change_names_a_node_by_part_of_its_name(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#play=what-if")
    value = page.get_by_label("What to change")
    value.fill("node")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Which one? node-0, node-1, node-2, node-3")).to_be_visible()
    value.fill("ode 2")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Changes that are tried")).to_contain_text("drain node-2")


def test_next_change_takes_the_place_of_a_refused_one(
    small: ContractServer, open_page: Open
) -> None:
    small.answers["what-if"] = lambda _: {"error": "there is no node b200", "code": "unusable"}
    page = open_page(f"{small.url}#play=what-if")
    value = page.get_by_label("What to change")
    value.fill("b200")
    page.keyboard.press("Enter")
    expect(page.get_by_text("there is no node b200")).to_be_visible()
    value.fill("node-2")
    page.keyboard.press("Enter")
    changes = page.get_by_label("Changes that are tried").get_by_role("listitem")
    expect(changes).to_have_text(["drain node-2×"])


@pytest.mark.parametrize(
    ("key", "place"),
    [("c", "cel-expression"), ("w", "whatif-value"), ("h", "moment")],
    ids=str,
)
def test_key_of_a_pane_goes_to_its_field(
    key: str, place: str, small: ContractServer, open_page: Open
) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    page.keyboard.press(key)
    expect(page.locator(f"#{place}")).to_be_focused()


def test_slices_of_an_upgraded_driver_are_pasted(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#play=what-if")
    page.get_by_label("Change", exact=True).select_option("replace-slices")
    manifest = page.get_by_label("What to change")
    manifest.fill("kind: ResourceSlice\n\nmetadata: {name: a}")
    page.get_by_role("button", name="Try", exact=True).click()
    changes = page.get_by_role("list", name="Changes that are tried").get_by_role("listitem")
    expect(changes).to_have_count(1)
    expect(changes).to_contain_text("replace-slices kind: ResourceSlice")
    assert "what-if" in small.asked


def test_expression_paints_the_map(small: ContractServer, open_page: Open) -> None:
    page = open_page(f"{small.url}#play=cel")
    page.get_by_role("textbox").fill('device.driver == "gpu.example.com"')
    legend = page.get_by_role("group", name="Legend: What the expression selects")
    expect(legend).to_contain_text("yes16")
    page.get_by_role("textbox").fill("devise.driver")
    expect(page.get_by_text("undeclared reference")).to_be_visible()
    expect(page.get_by_text("did you mean")).to_be_visible()
    page.get_by_role("button", name='device.driver == "nic.example.com"').click()
    expect(page.get_by_role("textbox")).to_have_value('device.driver == "nic.example.com"')
    expect(page.get_by_text("undeclared reference")).to_have_count(0)


def test_slider_shows_another_moment_and_the_way_back(
    small: ContractServer, open_page: Open
) -> None:
    page = open_page(f"{small.url}#play=time")
    slider = page.get_by_role("slider", name="Moment")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".banner")).to_contain_text("revision 990")
    assert "at=990" in hash_of(page)
    page.get_by_role("button", name=re.compile("Pending Pod vision.wait-0")).click()
    expect(page.locator(".banner")).to_contain_text("revision 950")
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator(".banner")).to_have_count(0)


def test_address_brings_everything_back(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    page.get_by_role("button", name=re.compile("wait-0")).click()
    page.get_by_role("button", name=re.compile("ask for 2")).click()
    page.get_by_role("button", name="Zoom in").click()
    expect(page.get_by_text("3 → 4")).to_be_visible()
    hash_of(page)
    again = open_page(page.url)
    wait_for_picture(again)
    expect(again.get_by_text("3 → 4")).to_be_visible()
    expect(again.get_by_text("constraint matchAttribute numaNode")).to_be_visible()
    assert hash_of(again) == hash_of(page)


# --- what changes ------------------------------------------------------------------------------


def test_change_is_drawn_and_no_row_jumps(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    expect(page.locator(".connection")).to_contain_text("live")
    before = page.locator(".group-head").all_inner_texts()
    groups = [
        {"cause": "a new cause", "count": 5, "first": 0, "wants": "1 nic"},
        *reversed(small.fleet["groups"]),
    ]
    page.wait_for_function("document.querySelector('.connection.live')")
    while not small.streams:
        page.wait_for_timeout(10)
    small.send({"revision": 1001, "time": "2026-01-31T12:00:05Z", "groups": groups,
                "set": {"devices": {"state": [[1, 1], [3, 4]]}}})  # fmt: skip
    expect(page.get_by_text("a new cause")).to_be_visible()
    after = page.locator(".group-head").all_inner_texts()
    assert [text.splitlines()[0] for text in after[:3]] == [text.splitlines()[0] for text in before]
    expect(page.get_by_role("group", name="Legend: State")).to_contain_text("tainted1")


def test_old_explanation_says_so_and_is_asked_for_again(
    small: ContractServer, open_page: Open
) -> None:
    page = open_page(small.url)
    page.get_by_role("button", name=re.compile("wait-0")).click()
    expect(page.get_by_text("constraint matchAttribute numaNode")).to_be_visible()
    expect(page.get_by_text("The fleet has changed since")).to_have_count(0)
    while not small.streams:
        page.wait_for_timeout(10)
    small.send({"revision": 1001, "time": "2026-01-31T12:00:05Z",
                "set": {"devices": {"state": [[1, 1]]}}})  # fmt: skip
    expect(page.get_by_text("The fleet has changed since")).to_be_visible()
    page.get_by_role("button", name="Ask again").click()
    expect(page.get_by_text("The fleet has changed since")).to_have_count(0)
    assert small.asked.count("explain") == 2


def test_lost_server_is_said_and_found_again(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    while not small.streams:
        page.wait_for_timeout(10)
    small.stop()
    expect(page.locator(".banner")).to_contain_text("Reconnecting. This is the fleet of 12:00:00")
    expect(page.locator(".banner")).to_contain_text("After a restart, moor ui prints a new link")
    small.start()
    page.get_by_role("button", name="Try now").click()
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator(".connection")).to_contain_text("live")


# --- nothing to show ----------------------------------------------------------------------------


def test_signed_out_says_how_to_sign_in(small: ContractServer, open_page: Open) -> None:
    small.is_signed_in = False
    page = open_page(small.url)
    expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
    expect(page.get_by_text("moor ui", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("forbidden", "words"),
    [([], "No devices yet"), (["resourceslices"], "You may not list ResourceSlices")],
    ids=str,
)
def test_empty_fleet_says_why(forbidden: list[str], words: str, open_page: Open) -> None:
    server = ContractServer(fleet_of(0, pending=0), forbidden=forbidden)
    try:
        page = open_page(server.url)
        expect(page.get_by_role("heading", name=words)).to_be_visible()
        expect(page.get_by_text("No pod waits.")).to_be_visible()
    finally:
        server.stop()


def test_narrow_window_shows_everything_below_each_other(
    small: ContractServer, open_page: Open
) -> None:
    page = open_page(f"{small.url}#pod=default/wait-0&play=what-if", width=390)
    wait_for_picture(page)
    places = [
        page.get_by_role("combobox", name="Find"),
        page.get_by_role("group", name="Zoom"),
        page.locator("canvas"),
        page.get_by_text("constraint matchAttribute numaNode"),
        page.get_by_role("heading", name="Fleet", exact=True),
        page.get_by_role("tablist"),
        page.get_by_role("group", name=re.compile("^Legend")),
        page.get_by_label("What to change"),
    ]
    boxes = [box for place in places if (box := place.bounding_box())]
    assert len(boxes) == len(places)
    ends = [box["y"] + box["height"] for box in boxes]
    assert all(end <= box["y"] + 1 for end, box in zip(ends, boxes[1:], strict=False))
    assert boxes[0]["width"] > 300
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_viewer_with_less_rights_is_told_what_that_means(open_page: Open) -> None:
    server = ContractServer(fleet_of(4), forbidden=["pods", "resourceclaims"])
    server.answers["explain"] = lambda _: {"error": "The pod is not held up.", "code": "unusable"}
    try:
        page = open_page(server.url)
        note = page.get_by_text("You see a part of the cluster")
        expect(note).to_contain_text("which devices others hold is not known")
        note.click()
        expect(page.get_by_text("pods, resourceclaims")).to_be_visible()
        page.get_by_role("button", name=re.compile("wait-1")).click()
        expect(page.get_by_text("others may hold its devices")).to_be_visible()
    finally:
        server.stop()


def test_server_that_refuses_is_quoted(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    small.answers["explain"] = lambda _: {"error": "The pod is gone.", "code": "unusable"}
    page.get_by_role("button", name=re.compile("wait-1")).click()
    expect(page.get_by_text("The pod is gone.")).to_be_visible()
    expect(page.get_by_role("button", name="Ask again")).to_be_visible()


def test_hint_of_the_first_visit_is_shown_once(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url, hint=True)
    page.evaluate("localStorage.clear()")
    page.reload()
    page.get_by_role("button", name="Got it").click()
    page.reload()
    wait_for_picture(page)
    expect(page.get_by_role("button", name="Got it")).to_have_count(0)


def test_help_lists_the_keys(small: ContractServer, open_page: Open) -> None:
    page = open_page(small.url)
    wait_for_picture(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("find a node, pod, claim or device")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
