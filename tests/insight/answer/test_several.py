"""Causes that lie in several things at once, or that end the search before anything else is seen.

Each situation is one file with a pending pod. The cause names what is wrong, the first fix is what
an expert would do, and every change that is offered is valid and places the pod, or spares it.
"""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.insight.answer.changes.edits import APPEND, Edit, ObjectChange, edited_tree
from moorage.insight.answer.combined import joined, joined_causes
from moorage.insight.answer.devices.contention import Wish, overdrawn
from tests.insight.answer.asking import ADVICE, FOLDER, Expected, Situations

EXPECTED = {
    # errors
    "error-in-class": Expected(
        "2 of 3 devices have no fpga.example.com/lanes.*class wide.*error",
        'class wide: .*device.driver == "fpga.example.com" &&.*administrator',
    ),
    "error-in-class-of-one-driver": Expected(
        "1 of 2 devices has no .*family.*class fast",
        r"class fast: .*has\(.*family\).*administrator",
    ),
    "error-in-first-alternative": Expected(
        "switchPlane.*acc/linked.*alternative plain is not tried", r"acc/linked.*has\(.*switchPlane"
    ),
    "error-in-one-half": Expected("1 of 2 devices has no .*/rank", r"has\(.*rank"),
    "two-errors": Expected(
        "no acc.example.com/family.*; and .*fpga.example.com/lanes",
        r"request acc.*has\(.*family.*; and request fpga.*has\(.*lanes",
    ),
    "type-error-in-class": Expected(
        'class modern: firmware is a version, not the string "2.0.0"; the error ends',
        r'class modern: .*semver\("2.0.0"\).*administrator',
    ),
    # sums
    "containers-beside-a-holder": Expected(
        r"main \(2\) and probe \(1\) want 3 .*node n1 has 3, 2 of them free",
        "ask for 1 instead of 2 in container main",
    ),
    "requests-beyond-the-node": Expected(
        r"encode \(3\) and decode \(2\) want 5 .*acc.example.com together, node n1 has 4",
        "ask for 2 instead of 3 in request encode",
    ),
    "containers-beyond-the-node": Expected(
        r"containers main \(3\) and probe \(2\) want 5 example.com/acc together, node n1 has 4",
        "ask for 2 instead of 3 in container main",
    ),
    "claims-beyond-the-node": Expected(
        "acc of claim devices .3. and acc of claim more .2. want 5", "2 instead of 3 .*devices"
    ),
    "two-want-the-only-fast-one": Expected(
        r"first \(1\) and second \(2\) want 3 .*only 2 devices fit them.*acc-0, acc-1",
        "ask for 1 instead of 2 in request second",
    ),
    "all-but-one-is-held": Expected(
        "all 3 devices.*1 of them in use by claim held of pod notebook", "wait .*notebook", ADVICE
    ),
    # nodes
    "devices-on-different-nodes": Expected(
        "acc.example.com is on n1 only, .*fpga.example.com is on n2 only: no node has both",
        "acc.example.com and of class fpga.example.com",
        ADVICE,
    ),
    "models-on-different-nodes": Expected(
        "request old .*n1 only, request new .*n2 only: no node has both", "split the pod", ADVICE
    ),
    "free-on-different-nodes": Expected(
        "acc finds free devices on n2 only.*fpga.* on n1 only", "wait until .*notebook", ADVICE
    ),
    "each-node-short-of-one": Expected(
        "no node has more than 1: on n1 acc-1 is tainted; on n2 pod notebook", "repaired", ADVICE
    ),
    "zone-beside-a-broken-node": Expected(
        "zone=a.*devices are on b1, which has b; node a1 is not ready", "remove .*zone"
    ),
    "only-a-broken-node": Expected("n1.*is not ready", "see why node n1 is not ready", ADVICE),
    # several mistakes
    "typo-and-too-many": Expected(
        "modle does not exist: did you mean model.*3 devices",
        "model instead of modle; and ask for 2",
    ),
    "processors-and-devices": Expected(
        "16 CPUs.*8 CPUs; and .*4 devices.*has 2", "8 CPUs instead of 16 .*; and ask for 2 "
    ),
    "template-and-selector": Expected(
        'template device does not exist.*devices.*model "Vega"', 'template devices .*; and .*"vega"'
    ),
    "three-classes-on-three-nodes": Expected(
        "acc.* n1, n2 only.*fpga.* n1, n3 only.*nic.* n2, n3 only: no node has all", "nic", ADVICE
    ),
    # replicas
    "replicas-beyond-the-processors": Expected(
        "2 of 4 pods of Deployment train fit; .*3 CPUs", "run 2 replicas", about="pod/train-2"
    ),
    "replicas-beyond-the-devices": Expected(
        "2 of 3 pods of Deployment train fit", "run 2 replicas", about="pod/train-2"
    ),
    "stateful-replicas": Expected(
        "2 of 3 pods of StatefulSet train fit", "run 2 replicas", about="pod/train-2"
    ),
    "parallel-pods-of-a-job": Expected(
        "2 of 3 pods of Job train fit", "parallelism 2 instead of 3", about="pod/train-2"
    ),
    # what plans know
    "claim-of-256-pods": Expected(
        "claim shared is reserved for 256 pods", "create a second claim, shared-2"
    ),
    "binding-that-failed": Expected(
        "device acc-0 of claim fabric cannot be bound: .*CableBroken: cable 7",
        "driver acc.example.com cannot bind device acc-0",
        ADVICE,
    ),
    "binding-that-is-late": Expected(
        "acc-0 of claim fabric is not bound after 10 minutes: acc.example.com/attached",
        "driver acc.example.com cannot bind device acc-0",
        ADVICE,
    ),
    "runtime-class-with-overhead": Expected(
        "18 CPUs .4 of it overhead of runtime class sandbox.*16", "12 CPUs instead of 14"
    ),
    "runtime-class-typo": Expected("RuntimeClass sandbx.*sandbox", "runtimeClassName sandbox"),
    "runtime-class-not-given": Expected("RuntimeClass gvisor", "RuntimeClass gvisor", ADVICE),
}
SITUATIONS = Situations(FOLDER / "several", EXPECTED)


def test_every_situation_has_its_expectation() -> None:
    SITUATIONS.check_names()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_cause_is_named_and_the_first_fix_helps(name: str) -> None:
    SITUATIONS.check_answer(name)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_change_that_is_offered_is_valid_and_places_the_pod(name: str) -> None:
    SITUATIONS.check_changes(name)


def test_nobody_waits_for_pods_of_the_same_workload() -> None:
    texts = [fix["text"] for fix in SITUATIONS.pending("stateful-replicas")["fixes"]]
    assert [text for text in texts if text.startswith("wait")] == [
        "wait until claim held of pod notebook frees its devices, or ask its owner"
    ]
    texts = [fix["text"] for fix in SITUATIONS.pending("replicas-beyond-the-devices")["fixes"]]
    assert not any("wait" in text for text in texts)


def test_a_broken_node_is_neither_tolerated_nor_nearest() -> None:
    for name in ("only-a-broken-node", "zone-beside-a-broken-node"):
        assert not any("tolerate" in fix["text"] for fix in SITUATIONS.pending(name)["fixes"])


def test_an_error_speaks_before_every_other_cause() -> None:
    found = SITUATIONS.pending("error-in-first-alternative")
    assert "running" not in found["cause"]
    assert [fix["rank"] for fix in found["fixes"]] == ["give"]


# --- contention -----------------------------------------------------------------------------

wishes = st.lists(
    st.builds(Wish, st.integers(1, 3), st.integers(0, 2**5 - 1)), min_size=1, max_size=4
)


def is_too_much(some: list[Wish]) -> bool:
    there = 0
    for each in some:
        there |= each.fitting
    return sum(each.wanted for each in some) > there.bit_count()


@given(wishes)
def test_wishes_are_overdrawn_exactly_if_some_want_more_than_fits_them(
    given_wishes: list[Wish],
) -> None:
    found = overdrawn(given_wishes)
    sizes = range(1, len(given_wishes) + 1)
    expected = any(is_too_much(list(s)) for size in sizes for s in combinations(given_wishes, size))
    assert bool(found) is expected
    if found:
        chosen = [given_wishes[number] for number in found]
        assert is_too_much(chosen)
        rests = [chosen[:n] + chosen[n + 1 :] for n in range(len(chosen))]
        assert not any(is_too_much(rest) for rest in rests)


# --- combined changes -----------------------------------------------------------------------


def test_changes_are_joined_as_if_made_one_after_the_other() -> None:
    tree = {"spec": {"rules": [{"a": 1}, {"b": 2}]}}
    first = ObjectChange("Pod", "team", "x", (Edit(("spec", "rules", 0)),))
    second = ObjectChange("Pod", "team", "x", (Edit(("spec", "rules", 0, "b"), 3),))
    (change,) = joined((first,), (second,))
    assert edited_tree(tree, change.edits) == {"spec": {"rules": [{"b": 3}]}}


def test_an_object_that_is_made_is_changed_where_it_is_made() -> None:
    made = ObjectChange("Pod", "team", "x", new={"spec": {}})
    more = ObjectChange("Pod", "team", "x", (Edit(("spec", "rules", APPEND), 1),))
    (change,) = joined((made,), (more,))
    assert change.new == {"spec": {"rules": [1]}}
    assert change.edits == ()
    assert made.new == {"spec": {}}


def test_causes_are_joined_as_far_as_there_is_room() -> None:
    assert joined_causes(["a is wrong", "b is wrong"]) == "a is wrong; and b is wrong"
    assert joined_causes(["did you mean a?", "b is wrong"]) == "did you mean a? And b is wrong"
    long = "the first thing is wrong, and it is told at some length: one, two, three, four, five"
    line = joined_causes([long, f"{'b' * 45} is wrong: {'c' * 60}"])
    assert line == f"{long}; and {'b' * 45} is wrong"
    only = joined_causes(["x" * 150, "y" * 150])
    assert only == "x" * 150
