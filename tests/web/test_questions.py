"""Answers to questions are those of the commands, painted over the fleet."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.core import Node
from moorage.api.core.namespace import Event, ObjectReference
from moorage.api.core.node import NodeStatus
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    DeviceTaint,
)
from moorage.insight.snapshot.snapshot import key_of
from moorage.web import causes
from moorage.web.columns import decode
from moorage.web.errors import BadQuestionError, PageError, UnusableError
from moorage.web.fleet import Delta, apply
from moorage.web.questions.cel import ERROR, NO, YES, cel_answer
from moorage.web.questions.details import device_answer, object_answer
from moorage.web.questions.explain import explain_answer, prepare
from moorage.web.questions.kept_cluster import KeptCluster
from moorage.web.questions.moment import ShownMoment, bounded_plan
from moorage.web.questions.what_if import fix_answer, what_if_answer
from moorage.web.scene import Scene
from tests.insight.topologies import claim, counters, device, partition, result, slice_of
from tests.web.fleets import CONTEXT, GPU, holding, machine, told, waiting

ROOM = {"pods": Quantity.parse("110"), "cpu": Quantity.parse("64")}
GPUS = DeviceClass(
    metadata=ObjectMeta(name="gpu"),
    spec=DeviceClassSpec(
        selectors=(
            DeviceSelector(cel=CELDeviceSelector(expression='device.driver == "gpu.example.com"')),
        )
    ),
)


def roomy(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=ROOM))


def moment_of(*objects: Any, kept: KeptCluster | None = None) -> ShownMoment:
    scene = Scene(CONTEXT, objects)
    rows = scene.rows
    return ShownMoment(
        scene.snapshot,
        scene.fleet(1, ""),
        tuple(rows.usages),
        rows.device_rows,
        CONTEXT,
        scene.copy,
        kept or KeptCluster(),
    )


TAINTED = slice_of(
    device("nic-0", taints=(DeviceTaint(key="sick", effect="NoSchedule"),)),
    driver="nic.example.com",
    pool="n1",
    name="nics",
)
CLUSTER = [
    GPUS,
    *machine("n1", 3),
    *machine("n2", 2),
    TAINTED,
    holding("busy", "gpu-0"),
    *waiting("big", count=3),
    roomy("n1"),
    roomy("n2"),
]


@pytest.fixture
def moment() -> ShownMoment:
    return moment_of(*CLUSTER)


def by_name(moment: ShownMoment, column: Any) -> dict[str, int]:
    values = decode(column)
    return {
        f"{each.id.pool}/{each.id.device}": value
        for each, value in zip(moment.devices, values, strict=True)
    }


# --- explain ----------------------------------------------------------------------------------


def test_a_pending_pod_is_explained_and_painted(moment: ShownMoment) -> None:
    answer = explain_answer(moment, "team", "big")
    assert "2 of 3 free" in answer["cause"]
    assert answer["fixes"][0]["number"] == 1
    (request,) = answer["requests"]
    labels = [step["label"] for step in request["funnel"]]
    counts = [step["count"] for step in request["funnel"]]
    assert labels[0] == "in the fleet"
    assert labels[-1] == "together"
    assert counts == sorted(counts, reverse=True)
    questions = answer["paint"]["questions"]
    painted = {
        name: questions[value]
        for name, value in by_name(moment, answer["paint"]["devices"]).items()
    }
    assert painted == {
        "n1/gpu-0": "taken",
        "n1/gpu-1": "would do by itself",
        "n1/gpu-2": "would do by itself",
        "n1/nic-0": "not of the class",
        "n2/gpu-0": "would do by itself",
        "n2/gpu-1": "would do by itself",
    }


def test_a_pod_that_does_not_wait_has_no_explanation(moment: ShownMoment) -> None:
    fits = moment_of(*CLUSTER, *waiting("small", count=1))
    with pytest.raises(UnusableError, match="would get node"):
        explain_answer(fits, "team", "small")


# --- what if ----------------------------------------------------------------------------------


def test_what_a_change_does_is_drawn_over_the_fleet(moment: ShownMoment) -> None:
    answer = what_if_answer(moment, ["delete-claim team/busy", "drain n2"])
    assert (answer["pendingBefore"], answer["pendingAfter"]) == (1, 0)
    (placed,) = answer["placed"]
    assert (placed["name"], placed["node"]) == ("big", "n1")
    assert {str(moment.devices[row].id.device) for row in placed["devices"]} == {
        "gpu-0",
        "gpu-1",
        "gpu-2",
    }
    after = told(apply(Delta(1, "", **answer["after"]), moment.fleet))
    assert after["nodes"]["n2"][1] == 2
    assert after["devices"][f"{GPU}/n1/gpu-0"][3] == 1
    assert "team/busy" not in after["claims"]


def test_a_removed_node_stays_as_a_ghost(moment: ShownMoment) -> None:
    answer = what_if_answer(moment, ["remove-node n2"])
    after = apply(Delta(1, "", **answer["after"]), moment.fleet)
    names = [after.strings[each] for each in after.tables["nodes"]["name"]]
    assert names == ["n1", "n2"]
    assert after.tables["nodes"]["state"][1] == 3
    assert told(after)["devices"][f"{GPU}/n2/gpu-0"][3] == 6


def test_machines_of_a_profile_are_added_after_all_others(moment: ShownMoment) -> None:
    answer = what_if_answer(moment, ["add-profile example-gpu"])
    after = apply(Delta(1, "", **answer["after"]), moment.fleet)
    assert after.rows("nodes") > moment.fleet.rows("nodes")
    for name, column in moment.fleet.tables["devices"].items():
        assert after.tables["devices"][name][: len(column)] == column


def test_a_manifest_is_added(moment: ShownMoment) -> None:
    manifest = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, image: i}]}"
    )
    answer = what_if_answer(moment, [f"add {manifest}"])
    assert {each["name"] for each in answer["placed"]} == {"x"}


def test_a_fix_is_made(moment: ShownMoment) -> None:
    fixes = explain_answer(moment, "team", "big")["fixes"]
    number = next(fix["number"] for fix in fixes if not fix["isAdvice"])
    answer = fix_answer(moment, "team", "big", number)
    assert answer["pendingAfter"] == 0
    assert [each["name"] for each in answer["placed"]] == ["big"]
    advice = next((fix["number"] for fix in fixes if fix["isAdvice"]), None)
    if advice is not None:
        with pytest.raises(UnusableError, match="advice"):
            fix_answer(moment, "team", "big", advice)
    with pytest.raises(BadQuestionError):
        fix_answer(moment, "team", "big", 99)


def test_asking_changes_nothing(moment: ShownMoment) -> None:
    before = told(moment.copy_scene().fleet(1, ""))
    what_if_answer(moment, ["remove-node n1", "delete-claim team/busy"])
    explain_answer(moment, "team", "big")
    cel_answer(moment, "true")
    assert told(moment.copy_scene().fleet(1, "")) == before


@pytest.mark.parametrize(
    "change",
    ["", "fly n1", "drain", "drain nowhere", "taint-node n1", "taint-device a/b/c=k:NoSchedule",
     "add-profile none", "add {", "add kind: Pod", "remove-rule x", "delete-claim x"],
)  # fmt: skip
def test_a_change_that_cannot_be_is_refused(moment: ShownMoment, change: str) -> None:
    with pytest.raises(PageError):
        what_if_answer(moment, [change])


def test_a_change_of_nothing_says_what_is_missing(moment: ShownMoment) -> None:
    with pytest.raises(BadQuestionError, match=r"^'drain': name what to change\.$"):
        what_if_answer(moment, ["drain"])


@settings(max_examples=50)
@given(st.lists(st.text(max_size=20), max_size=3))
def test_words_of_any_kind_are_an_answer_or_an_error(changes: list[str]) -> None:
    with pytest.raises(PageError):
        what_if_answer(moment_of(GPUS, *machine("n1")), changes)


# --- CEL --------------------------------------------------------------------------------------


def test_an_expression_is_painted_with_its_cost(moment: ShownMoment) -> None:
    answer = cel_answer(moment, 'device.driver == "nic.example.com"')
    assert [name for name, v in by_name(moment, answer["devices"]).items() if v == YES] == [
        "n1/nic-0"
    ]
    assert answer["counts"] == {"yes": 1, "no": 5, "error": 0}
    assert answer["cost"]["worst"] <= answer["cost"]["estimate"] < answer["cost"]["limit"]
    (part,) = answer["parts"]
    assert (part["yes"], part["of"]) == (1, 6)


def test_errors_are_painted_and_told(moment: ShownMoment) -> None:
    answer = cel_answer(moment, 'device.attributes["gpu.example.com"].numaNode == 1')
    painted = by_name(moment, answer["devices"])
    assert painted["n1/nic-0"] == ERROR
    assert painted["n1/gpu-0"] == NO
    assert painted["n1/gpu-1"] == YES
    (error,) = answer["errors"]
    assert (error["count"], error["example"]) == (1, "nic.example.com/n1/nic-0")


def test_what_was_meant_is_a_hint(moment: ShownMoment) -> None:
    answer = cel_answer(moment, 'device.driver == "gpu.exampel.com"')
    assert answer["meant"] == {
        "lead": "did you mean",
        "expression": 'device.driver == "gpu.example.com"',
    }
    assert len(answer["hints"]) == 1
    answer = cel_answer(moment, "device.driver = 3")
    assert answer["compileError"]["offset"] == 15
    assert "devices" not in answer


@settings(max_examples=50)
@given(st.text(max_size=30))
def test_any_text_is_evaluated_or_refused(text: str) -> None:
    answer = cel_answer(moment_of(*machine("n1")), text)
    assert "compileError" in answer or sum(answer["counts"].values()) == 2


# --- details ----------------------------------------------------------------------------------


def test_a_device_tells_everything_about_it(moment: ShownMoment) -> None:
    answer = device_answer(moment, GPU, "n1", "gpu-0")
    assert answer["state"] == "taken"
    assert [holder["claim"] for holder in answer["holders"]] == ["busy"]
    assert {"name": "pcieRoot", "value": "pci0", "type": "string"} in answer["attributes"]
    assert answer["slice"] == "slice-n1"
    nic = device_answer(moment, "nic.example.com", "n1", "nic-0")
    assert [(each["key"], each["from"]) for each in nic["taints"]] == [("sick", "slice")]


def test_counters_say_what_is_used() -> None:
    parts = moment_of(
        *machine("n"),
        slice_of(
            partition("whole", 4), partition("half", 2), count=2, name="p", pool="n", driver="p"
        ),
        slice_of(shared_counters=(counters(4),), count=2, name="c", pool="n", driver="p"),
        claim("c", result("half", pool="n", driver="p")),
    )
    (counter,) = device_answer(parts, "p", "n", "whole")["counters"]
    assert counter == {
        "set": "gpu-0", "name": "slices", "total": "4", "used": "2", "consumes": "4",
    }  # fmt: skip


def test_an_object_is_shown_with_its_newest_events(moment: ShownMoment) -> None:
    about = ObjectReference(kind="Pod", namespace="team", name="big")
    events = [
        Event(metadata=ObjectMeta(name=f"e{n}"), involved_object=about, reason=f"R{n}", count=n)
        for n in range(60)
    ]
    answer = object_answer(moment, "Pod", "team", "big", events)
    assert "name: big" in answer["yaml"]
    assert len(answer["events"]) == 50


UPGRADED = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: new}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 9, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
"""


def test_slices_of_a_driver_are_replaced(moment: ShownMoment) -> None:
    answer = what_if_answer(moment, [f"replace-slices {UPGRADED}"])
    assert "gpu.example.com: free 4 → 0, of 5 → 1" in answer["text"]


def test_to_replace_slices_takes_slices(moment: ShownMoment) -> None:
    with pytest.raises(UnusableError, match="there is no ResourceSlice in it"):
        what_if_answer(moment, ["replace-slices kind: Node\napiVersion: v1\nmetadata: {name: a}"])


def test_what_is_prepared_changes_no_answer() -> None:
    kept = KeptCluster()
    known, quiet = moment_of(*CLUSTER, kept=kept), moment_of(*machine("n1"))
    for each in (known, quiet):
        prepare(each)
        assert len(each.published_rows) == len(each.published)
    assert explained(known) == explained(moment_of(*CLUSTER))


def test_pods_whose_turn_does_not_come_have_the_schedulers_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(causes, "ALL_S", 0.0)
    snapshot = moment_of(*CLUSTER, *waiting("late", count=4)).snapshot
    plan = bounded_plan(snapshot, CONTEXT)
    first, second = (each.text for each in causes.find_causes(plan, CONTEXT).values())
    assert not first.startswith("0/2 nodes are available")
    assert second.startswith("0/2 nodes are available")


# --- the kept cluster -------------------------------------------------------------------------

CHANGES = st.lists(
    st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=3), max_size=5
)
CHANGING: list[Any] = [
    holding("busy", "gpu-0"),
    holding("busy", "gpu-1"),
    holding("more", "gpu-1", "gpu-2"),
    roomy("n2"),
    *machine("n3", 4)[1:],
    roomy("n3"),
    waiting("other", count=1)[1],
    waiting("other", count=1)[0],
    TAINTED,
    slice_of(device("gpu-0"), pool="n1", generation=2, name="slice-n1"),
]


@settings(max_examples=25)
@given(CHANGES)
def test_a_kept_cluster_explains_as_one_made_anew(
    steps: list[list[tuple[bool, int]]],
) -> None:
    known = {key_of(each): each for each in CLUSTER}
    kept = KeptCluster()
    for step in steps:
        for is_written, index in step:
            value = CHANGING[index]
            if is_written:
                known[key_of(value)] = value
            else:
                known.pop(key_of(value), None)
        for ask in (explained, drained, explained):
            expected = ask(moment_of(*known.values()))
            assert ask(moment_of(*known.values(), kept=kept)) == expected


def explained(moment: ShownMoment) -> Any:
    try:
        return explain_answer(moment, "team", "big")
    except PageError as error:
        return error.text


def drained(moment: ShownMoment) -> Any:
    try:
        return what_if_answer(moment, ["drain n1"])
    except PageError as error:
        return error.text
