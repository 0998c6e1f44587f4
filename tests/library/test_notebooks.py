"""Results in notebooks: tables and pictures, of which nothing from outside is markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest

import moorage
from moorage.library import html

EVIL = "<script>alert(1)<script>"
DRIVER = "gpu.example.com"


def manifest(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    versions = {"Node": "v1", "Pod": "v1"}
    version = versions.get(kind, "resource.k8s.io/v1")
    # With a resource version it is a stored object, which no rule about names refuses.
    metadata = {"name": name, "resourceVersion": "1", "uid": f"{kind}-{name}"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def evil_world() -> moorage.World:
    """Return a world whose names are markup, wherever a cluster may have any."""
    devices = [{"name": f"{EVIL}{number}"} for number in range(2)]
    pool = {"name": EVIL, "generation": 1, "resourceSliceCount": 1}
    request = {"name": "gpu", "exactly": {"deviceClassName": EVIL, "count": 3}}
    container = {"name": "c", "image": "x", "resources": {"claims": [{"name": "d"}]}}
    entry = {"name": "d", "resourceClaimName": EVIL}
    return moorage.load(
        manifest("Node", EVIL, status={"allocatable": {"pods": "110", "cpu": "4"}}),
        manifest("DeviceClass", EVIL, spec={}),
        manifest(
            "ResourceSlice",
            EVIL,
            spec={"driver": DRIVER, "nodeName": EVIL, "pool": pool, "devices": devices},
        ),
        manifest("ResourceClaim", EVIL, spec={"devices": {"requests": [request]}}),
        manifest("Pod", EVIL, spec={"containers": [container], "resourceClaims": [entry]}),
        manifest("Pod", f"{EVIL}2", spec={"containers": [{"name": "c", "image": "x"}]}),
    )


def results_of(world: moorage.World) -> Iterator[moorage.Readable]:
    plan = world.plan()
    yield world
    yield plan
    yield from plan.pods
    for explanation in plan.explain():
        yield explanation
        yield from explanation.fixes
    yield world.fit(f"pod/{world.namespace}/{plan.pods[-1].name}", replicas_max=5)
    found = world.what_if(remove_node=world.nodes[0])
    yield found
    yield from found.pods
    for sequence in (world.devices(), world.claims()):
        yield sequence
        yield from sequence
    trace = [{"arrival": 0, "workload": f"pod/{plan.pods[-1].full_name}", "duration": 60}]
    simulation = moorage.simulate(world, trace)
    yield simulation
    yield simulation.chart()
    request = {"name": EVIL, "exactly": {"deviceClassName": EVIL}}
    broken = manifest("ResourceClaim", EVIL, spec={"devices": {"requests": [request]}})
    yield moorage.validate(broken)
    found_mistakes = moorage.lint(broken, profile="dgx-h100")
    yield found_mistakes
    yield from found_mistakes
    yield moorage.profiles()[0]


@pytest.mark.filterwarnings("ignore::moorage.MoorageWarning")
def test_nothing_from_outside_is_markup() -> None:
    kinds = set()
    for result in results_of(evil_world()):
        kinds.add(type(result))
        shown = result._repr_html_()
        assert "<script" not in shown, type(result)
        assert EVIL not in shown
        ET.fromstring(f"<all>{shown}</all>")
        assert str(result)
        assert repr(result).startswith(f"<{type(result).__name__}: ")
        assert result.to_dict() is not None
    assert kinds >= {
        each for each in moorage.Readable.__subclasses__() if each.__name__ != "_Pod"
    } - {moorage.Record}
    assert kinds >= set(moorage.Record.__subclasses__())


def test_whatever_cannot_be_printed_is_escaped() -> None:
    assert html.text("\x1b[31m\u202e<&\"'>") == "\\x1b[31m\\u202e&lt;&amp;&quot;&#x27;&gt;"


def test_long_tables_are_cut_and_say_so() -> None:
    shown = html.table(("Name",), ((number,) for number in range(1000)))
    assert shown.count("<tr>") == html.ROWS_SHOWN_MAX + 1
    assert "and 800 more rows" in shown


# --- charts ---------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def test_a_chart_has_a_line_for_each_name() -> None:
    chart = moorage.chart({"a": [(0, 0), (10, 100)], "<b>": [(5, 50)]}, title="t", x="x", y="y")
    tree = ET.fromstring(chart.svg)
    lines = [each.find(f"{SVG}title") for each in tree.iter(f"{SVG}polyline")]
    assert [title.text for title in lines if title is not None] == ["a", "<b>"]
    words = {each.text for each in tree.iter(f"{SVG}text")}
    assert {"t", "x", "y", "a", "<b>", "0", "100", "10"} <= words
    (first, _) = tree.iter(f"{SVG}polyline")
    assert first.attrib["points"] == "70.0,272.0 554.0,34.0"


@pytest.mark.parametrize(
    "points",
    [
        [(0, 0)],
        [(1, 1)],
        [(-5, -1), (5, 1)],
        [(0, 1e-9)],
        [(0, 1e300), (1e300, 0)],
        [(1, 0), (2, 0)],
    ],
)
def test_every_range_of_numbers_can_be_drawn(points: list[tuple[float, float]]) -> None:
    tree = ET.fromstring(moorage.chart({"a": points}).svg)
    for each in tree.iter(f"{SVG}circle"):
        assert 69 <= float(each.attrib["cx"]) <= 555
        assert 33 <= float(each.attrib["cy"]) <= 273


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ({}, "a chart needs a line with a point"),
        ({"a": []}, "a chart needs a line with a point"),
        ({"a": [(0, float("nan"))]}, "no finite number"),
        ({"a": [(float("inf"), 0)]}, "no finite number"),
        ({"a": [(0, 0)] * 100_001}, "more than 100,000"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(lines: Any, error: str) -> None:
    with pytest.raises(moorage.MoorageError, match=error):
        moorage.chart(lines)
