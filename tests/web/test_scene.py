"""A fleet that follows changes is the one that would be made anew, and says what devices say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.insight.devices import DeviceState, devices_in
from moorage.insight.snapshot.snapshot import Snapshot, key_of
from moorage.web.device_rows import STATES
from moorage.web.fleet import Delta, apply, delta, fleet_tree, read_fleet
from moorage.web.pending import UNSEEN, Cause
from moorage.web.questions.ghosts import ghosts
from moorage.web.scene import Scene
from tests.insight.topologies import (
    claim,
    counters,
    device,
    node,
    partition,
    result,
    share,
    shareable,
    slice_of,
)
from tests.web.fleets import CONTEXT, SMALL, cordoned, holding, machine, told, waiting


def scene_of(*objects: Any) -> Scene:
    return Scene(CONTEXT, objects)


def fleet_of(*objects: Any) -> Any:
    return scene_of(*objects).fleet(1, "now")


PARTS: dict[str, Any] = {"pool": "n2", "count": 2, "driver": "parts.example.com"}
# Each is written or removed at some time; several have the same name.
OBJECTS: list[Any] = [
    *machine("n1"),
    *machine("n2", 3),
    *machine("n10", 1),
    cordoned("n1"),
    slice_of(device("gpu-0"), pool="n1", generation=2, name="slice-n1"),
    slice_of(device("gpu-9"), pool="n1", generation=1, count=2, name="more-n1"),
    slice_of(partition("whole", 4), partition("half", 2), name="parts-n2", **PARTS),
    slice_of(name="counters-n2", shared_counters=(counters(4),), **PARTS),
    slice_of(shareable("link", bandwidth="10"), pool="net", name="net", all_nodes=True),
    claim("a", result("gpu-0", pool="n1"), pods=("p",)),
    claim("a", result("gpu-1", pool="n1"), pods=("p",)),
    claim("b", result("gpu-1", pool="n1"), result("gpu-2", pool="n2")),
    claim("c", share("link", 1, bandwidth="4")),
    claim("d", result("half", pool="n2", driver="parts.example.com")),
    claim("e", result("gone", pool="nowhere")),
    *waiting("p"),
    *waiting("p", "0/3 nodes are available: no room."),
    *waiting("q", "0/3 nodes are available: no room."),
]  # fmt: skip
STEPS = st.lists(
    st.lists(st.tuples(st.booleans(), st.integers(0, len(OBJECTS) - 1)), min_size=1, max_size=4),
    max_size=8,
)


@settings(max_examples=60)
@given(STEPS)
def test_changes_lead_to_the_fleet_that_would_be_made_anew(
    steps: list[list[tuple[bool, int]]],
) -> None:
    scene, known = scene_of(), dict[Any, Any]()
    before = scene.fleet(0, "0")
    for number, step in enumerate(steps, 1):
        written = [OBJECTS[index] for is_written, index in step if is_written]
        removed = [key_of(OBJECTS[index]) for is_written, index in step if not is_written]
        for key in removed:
            known.pop(key, None)
        known |= {key_of(each): each for each in written}
        scene.change(written, removed)
        after = scene.fleet(number, str(number))
        assert told(after) == told(Scene(CONTEXT, known.values()).fleet(0, ""))
        change = delta(before, after)
        if change is not None:
            sent = msgspec.json.decode(msgspec.json.encode(change), type=Delta)
            assert apply(sent, before) == after
        before = after


@settings(max_examples=40)
@given(STEPS)
def test_devices_have_the_states_that_the_list_of_devices_has(
    steps: list[list[tuple[bool, int]]],
) -> None:
    scene = scene_of(*(OBJECTS[index] for step in steps for _, index in step))
    found = scene.fleet(1, "")
    for usage in devices_in(scene.snapshot, CONTEXT):
        if usage.is_replaced:
            continue
        state = found.tables["devices"]["state"][scene.rows.device_row(usage.id)]
        is_part_taken = usage.state is DeviceState.BLOCKED and state == STATES[DeviceState.SHARED]
        assert state == STATES[usage.state] or is_part_taken


@settings(max_examples=40)
@given(STEPS, STEPS)
def test_another_moment_is_drawn_over_the_first_one(
    first: list[list[tuple[bool, int]]], second: list[list[tuple[bool, int]]]
) -> None:
    before = scene_of(*(OBJECTS[index] for step in first for _, index in step))
    wanted = Snapshot.of(OBJECTS[index] for step in second for _, index in step)
    after = before.copy()
    after.move_to(wanted)
    assert told(after.fleet(1, "")) == told(Scene(CONTEXT, wanted.objects()).fleet(1, ""))
    was, new = before.fleet(1, ""), after.fleet(1, "")
    change, places = ghosts(was, new)
    drawn = apply(change, was)
    for name in ("nodes", "devices"):
        kept = {key: column[: was.rows(name)] for key, column in drawn.tables[name].items()}
        assert kept.get("name") == was.tables[name].get("name")
    shown, expected = told(drawn), told(new)
    for name, row in expected["devices"].items():
        is_missing = row[3] == STATES[DeviceState.MISSING]
        assert shown["devices"][name][3 if is_missing else 0 :] == row[3 if is_missing else 0 :]
    assert {shown["devices"][k][3] for k in shown["devices"].keys() - expected["devices"]} <= {6}
    for name in ("holdings", "claims", "pods", "groups"):
        assert shown[name] == expected[name]
    names = [drawn.tables["devices"]["name"][row] for row in places]
    assert [drawn.strings[each] for each in names] == [
        new.strings[each] for each in new.tables["devices"]["name"]
    ]


def test_a_fleet_comes_back_from_json() -> None:
    fleet = fleet_of(*OBJECTS)
    tree = msgspec.json.decode(msgspec.json.encode(fleet_tree(fleet)))
    found = read_fleet(tree)
    assert (found.tables, found.groups) == (fleet.tables, fleet.groups)


def test_nodes_and_devices_are_in_natural_order() -> None:
    fleet = fleet_of(*machine("n10", 2), *machine("n2", 1))
    assert list(told(fleet)["nodes"]) == ["n2", "n10"]
    assert [name.rpartition("/")[2] for name in told(fleet)["devices"]] == ["gpu-0"] * 2 + ["gpu-1"]


def test_a_whole_device_is_used_by_its_partitions() -> None:
    parts = [
        slice_of(*(partition(f"half-{n}", 2) for n in (0, 1)), partition("whole", 4), count=2),
        slice_of(shared_counters=(counters(4),), count=2, name="counters"),
    ]
    devices = told(fleet_of(node("n"), *parts, claim("c", result("half-0"))))["devices"]
    whole, half, free = (
        devices[f"gpu.example.com/n/{name}"] for name in ("whole", "half-0", "half-1")
    )
    assert (whole[3], whole[4], whole[5]) == (2, 500, "")
    assert (half[3], half[4], half[5]) == (1, 1000, "gpu.example.com/n/whole")
    assert (free[3], free[4]) == (0, 0)


def test_a_share_is_a_part_of_its_device() -> None:
    fleet = fleet_of(
        node("n"),
        slice_of(shareable("link", bandwidth="10")),
        claim("c", share("link", 1, bandwidth="4")),
        claim("d", share("link", 2, bandwidth="1")),
    )
    (link,) = told(fleet)["devices"].values()
    assert link[3:5] == (2, 500)
    assert sorted(told(fleet)["holdings"].values()) == [100, 400]


def test_pods_wait_in_groups_of_one_cause() -> None:
    message = "0/2 nodes are available: no room. Moorage: ask for less. Fix: ask for 1 → n1."
    fleet = fleet_of(*SMALL, *waiting("two", message, 3), *waiting("one", message))
    assert told(fleet)["groups"] == {(UNSEEN, 1, "9 gpu"), ("ask for less", 2, "9 gpu")}


def test_a_cause_that_was_found_out_is_for_this_pod_only() -> None:
    scene = scene_of(*SMALL)
    scene.explain({("team", "big"): Cause("no node has 9", "pod-big")})
    assert {each.cause for each in scene.fleet(1, "").groups} == {"no node has 9"}
    scene.explain({("team", "big"): Cause("of another one", "other")})
    assert {each.cause for each in scene.fleet(1, "").groups} == {UNSEEN}


def test_only_a_changed_pool_is_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = scene_of(*SMALL)
    seen: list[int] = []

    def counted(snapshot: Snapshot, context: Any) -> Any:
        seen.append(len(snapshot.slices))
        return devices_in(snapshot, context)

    monkeypatch.setattr("moorage.web.pool_usages.devices_in", counted)
    scene.change([holding("busy", "gpu-1")])
    scene.change(waiting("more"))
    scene.change([cordoned("n1")])
    assert seen == [1]


def test_names_that_are_not_used_any_more_are_forgotten() -> None:
    scene = scene_of(*SMALL)
    for number in range(300):
        scene.change(
            waiting(f"pod-{number}"),
            [
                ("Pod", "team", f"pod-{number - 1}"),
                ("ResourceClaim", "team", f"pod-{number - 1}-gpus"),
            ],
        )
    fleet = scene.fleet(1, "")
    assert fleet.rows("pods") <= 3
    assert fleet.rows("claims") <= 4
