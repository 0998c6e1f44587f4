"""The picture shows every device once, in the colour of its owner, and names stay text."""

from __future__ import annotations

import random
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.core import Node
from moorage.api.resource.v1 import DeviceTaint
from moorage.hardware import Catalogue, NumaNodeForm
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.topology import picture, svg, topology
from moorage.insight.topology.drawing import DETAILED_MAX, DEVICES_MAX
from moorage.insight.topology.elements import (
    CHARACTER_WIDTH,
    COLOURS,
    PATTERNS,
    TEXT,
    columns,
    fitted,
    styles_of,
)
from moorage.insight.topology.layout import PlacedShape, machine_frame, placed
from moorage.insight.topology.model import Item
from reference.example_picture import example_picture
from tests.insight.topologies import (
    claim,
    device,
    drawn,
    node,
    result,
    share,
    shareable,
    slice_of,
)

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert('1')</script>\"&\x00\x1b\u202e]]>"


def parsed(*objects: Any) -> ElementTree.Element:
    return ElementTree.fromstring(svg(drawn(*objects), title="t"))


def devices_in(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """Return the groups of devices by the first line of their tooltips."""
    groups = [g for g in root.iter(f"{SVG}g") if "d" in g.get("class", "").split()]
    found = {(g.findtext(f"{SVG}title") or "").splitlines()[0]: g for g in groups}
    assert len(found) == len(groups)
    return found


def colours_in(group: ElementTree.Element) -> list[str]:
    looks = [each.get("class", "") for each in group.iter(f"{SVG}rect")]
    return [look for look in looks if re.fullmatch(r"c\d", look)]


def fleet_of(nodes: int, devices: int) -> list[Any]:
    found: list[Any] = []
    for number in range(nodes):
        inside = [device(f"{number}-{each}", {"numaNode": each % 2}) for each in range(devices)]
        found += [node(f"n{number}"), slice_of(*inside, pool=f"n{number}")]
    return found


# --- everything is there -----------------------------------------------------------------------


@pytest.mark.parametrize("profile", Catalogue().names)
def test_every_device_of_a_node_is_drawn_once(profile: str) -> None:
    fleet = Catalogue().fleet(profile, NumaNodeForm.LIST)
    first = fleet.nodes[0].metadata.name
    slices = [each for each in fleet.slices if each.spec.node_name == first]
    root = parsed(fleet.nodes[0], *slices)
    names = [each.name for slice_ in slices for each in slice_.spec.devices or ()]
    assert sorted(devices_in(root)) == sorted(names)


def test_devices_have_the_colours_of_their_owners() -> None:
    groups = devices_in(ElementTree.fromstring(_example_of_one_node()))
    by_owner = {
        owner: {tuple(colours_in(g)) for g in groups.values() if f"held by {owner}" in _tip(g)}
        for owner in ("vision/train", "speech/serve")
    }
    assert all(len(found) == 1 for found in by_owner.values())
    assert by_owner["vision/train"] != by_owner["speech/serve"]
    free = [group for group in groups.values() if _tip(group).endswith("\nfree")]
    assert len(free) == 10
    assert not any(map(colours_in, free))
    (shared,) = (g for name, g in groups.items() if name == "cpudevnuma000")
    assert "dra.cpu/cpu: 64 of 112 taken" in _tip(shared)


def _example_of_one_node() -> str:
    """Return the first machine of the example, whose claims the allocator served."""
    root = ElementTree.fromstring(example_picture())
    (first,) = (g for g in root.iter(f"{SVG}g") if g.get("data-node") == "0")
    return ElementTree.tostring(first, encoding="unicode")


def _tip(group: ElementTree.Element) -> str:
    return group.findtext(f"{SVG}title") or ""


def test_a_shared_device_has_a_part_for_each_owner() -> None:
    root = parsed(
        slice_of(shareable("d", memory="8Gi")),
        claim("a", share("d", 1, memory="2Gi")),
        claim("b", share("d", 2, memory="4Gi")),
    )
    group = devices_in(root)["d"]
    parts = [each for each in group.iter(f"{SVG}rect") if each.get("class", "").startswith("c")]
    first, second = (int(each.get("width", "")) for each in parts)
    assert second == 2 * first
    assert "memory: 6Gi of 8Gi taken" in _tip(group)


def test_amounts_beyond_all_measure_fill_the_bar_and_no_more() -> None:
    huge = f"1{'0' * 400}"
    root = parsed(
        slice_of(shareable("d", memory="1", cores="0")),
        claim("a", share("d", 1, memory=huge)),
        claim("b", share("d", 2, memory="-1", cores="1")),
    )
    group = devices_in(root)["d"]
    track, *parts = (each for each in group.iter(f"{SVG}rect") if each.get("height") == "4")
    assert [each.get("width") for each in parts] == [track.get("width")]


def test_headings_count_what_is_free() -> None:
    root = parsed(node("n"), slice_of(device("d"), device("e")), claim("c", result("d")))
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "1 of 2 free" in texts
    assert "gpu.example.com 1/2" in texts
    assert "1 node · 2 devices, 1 free · 1 claim with devices" in texts


def test_the_legend_names_owners_and_the_marks_that_occur() -> None:
    root = parsed(
        slice_of(device("d", {"numaNode": [0, 1]}), device("e"), count=2),
        claim("c", result("d"), pods=("p",)),
    )
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert {"team/c", "1 device · pod p", "unusable: the tooltip says why"} <= set(texts)
    assert "tainted" not in texts


def test_nothing_is_a_picture_too() -> None:
    assert "0 nodes · 0 devices, 0 free" in (parsed().findtext(f"{SVG}desc") or "")


# --- always the same ---------------------------------------------------------------------------


def test_the_order_of_objects_does_not_matter() -> None:
    objects = [
        *fleet_of(3, 4),
        claim("a", result("0-0", pool="n0")),
        claim("b", result("1-2", pool="n1"), result("2-1", pool="n2")),
    ]
    first = picture(Snapshot.of(objects), title="t")
    for seed in range(5):
        random.Random(seed).shuffle(objects)
        assert picture(Snapshot.of(objects), title="t") == first


# --- hostile names -----------------------------------------------------------------------------


def hostile_objects(text: str) -> list[Any]:
    inside = [device(text, {"numaNode": 0, "pcieRoot": text})]
    return [
        node(text),
        slice_of(*inside, driver=text, pool=text, count=1),
        slice_of(device(f"old{text}"), driver=text, pool=text, generation=0, name="old"),
        claim(text, result(text, driver=text, pool=text), namespace=text, pods=(text,)),
    ]


class Tags(HTMLParser):
    """Counts tags, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1
        self.names.update(name for name, _ in attrs)


@settings(max_examples=60)
@given(st.one_of(st.just(HOSTILE), st.text(min_size=1, max_size=40)))
def test_names_stay_text(text: str) -> None:
    found = Snapshot.of(hostile_objects(text))
    plain = Snapshot.of(hostile_objects("plain"))
    ElementTree.fromstring(picture(found, title=text))
    tags, expected = Tags(picture(found, title=text)), Tags(picture(plain, title="plain"))
    # A text of which nothing can be shown leaves its element out.
    assert {name: tags.seen[name] for name in ("script", "style", "g")} == {
        name: expected.seen[name] for name in ("script", "style", "g")
    }
    assert tags.names <= expected.names


@given(st.text(max_size=80), st.integers(0, 300), st.sampled_from([9, 10, 11, 14]))
def test_text_is_never_wider_than_its_room(text: str, width: int, font_size: int) -> None:
    assert columns(fitted(text, width, font_size)) * font_size * CHARACTER_WIDTH <= width


@given(st.text(alphabet="abc-1", max_size=12))
def test_text_that_has_room_is_left_alone(text: str) -> None:
    assert fitted(text, 200, 11) == text


# --- colours -----------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_is_readable_on_every_colour() -> None:
    for colour in COLOURS:
        assert (luminance(colour) + 0.05) / (luminance(TEXT) + 0.05) >= 7, colour


def test_owners_look_different_as_long_as_that_is_possible() -> None:
    room = len(COLOURS) * len(PATTERNS)
    owners = drawn(*(claim(f"c{n}", result(f"d{n}")) for n in range(room + 5))).owners
    assert len(set(styles_of(owners[:room]).values())) == room
    assert len(styles_of(owners)) == room + 5


def test_an_owner_keeps_its_colour_when_others_come_that_do_not_take_it() -> None:
    owners = drawn(*(claim(f"c{n}", result(f"d{n}")) for n in range(40))).owners
    alone = {owner: styles_of([owner])[owner] for owner in owners}
    for first, second in pairwise(owners):
        if alone[first] != alone[second]:
            assert styles_of([first, second]) == {first: alone[first], second: alone[second]}


# --- layout ------------------------------------------------------------------------------------


def shapes_of(profile: str) -> list[PlacedShape]:
    fleet = Catalogue().fleet(profile, NumaNodeForm.LIST)
    machine = topology(Snapshot.of([*fleet.nodes, *fleet.slices])).machines[0]
    frame = machine_frame(machine, is_compact=False)
    return list(placed(frame, 0, 0, frame.width, frame.height))


@pytest.mark.parametrize("profile", Catalogue().names)
def test_devices_do_not_overlap_and_stay_inside(profile: str) -> None:
    whole, *inside = shapes_of(profile)
    for each in inside:
        assert 0 <= each.x <= each.x + each.width <= whole.width
        assert 0 <= each.y <= each.y + each.height <= whole.height
    cells = [each for each in inside if isinstance(each.what, Item)]
    taken: set[tuple[int, int]] = set()
    for cell in cells:
        own = {
            (x, y)
            for x in range(cell.x, cell.x + cell.width, 2)
            for y in range(cell.y, cell.y + cell.height, 2)
        }
        assert not own & taken
        taken |= own


# --- many devices ------------------------------------------------------------------------------


def elements(nodes: int) -> int:
    return svg(drawn(*fleet_of(nodes, 10)), title="t").count("<")


def test_the_picture_grows_with_the_devices_and_no_faster() -> None:
    small, large = DETAILED_MAX // 10 + 25, 2 * (DETAILED_MAX // 10 + 25)
    assert elements(large) <= 2 * elements(small)


def test_what_is_too_much_is_left_out_and_said() -> None:
    nodes = [*fleet_of(11, DEVICES_MAX // 10)]
    text = svg(drawn(*nodes), title="t")
    assert text.count('class="d f"') == DEVICES_MAX
    assert "Too many to draw: 1 node and 1,000 devices are left out" in text
    assert "11 nodes · 11,000 devices, 11,000 free" in text


def test_small_devices_keep_their_tooltips() -> None:
    root = parsed(*fleet_of(1, DETAILED_MAX + 1))
    groups = devices_in(root)
    assert len(groups) == DETAILED_MAX + 1
    assert not any(list(group.iter(f"{SVG}text")) for group in groups.values())


def test_the_legend_of_small_devices_tells_what_they_show() -> None:
    taint = DeviceTaint(key="broken", effect="NoSchedule")
    tainted = slice_of(device("d", taints=(taint,)), pool="x")
    root = parsed(tainted, *fleet_of(1, DETAILED_MAX))
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "red corner: tainted, or contradictory" in texts
    assert "tainted" not in texts


def test_nodes_without_devices_are_told() -> None:
    empty = [Node(metadata=node(name).metadata) for name in ("a", "b")]
    description = parsed(*empty, *fleet_of(1, 1)).findtext(f"{SVG}desc") or ""
    assert description.startswith("1 node · 2 more without devices · 1 device, 1 free")
