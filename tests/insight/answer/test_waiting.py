"""Advice to wait: just those whom it names are gone in the rehearsal, and then the pod fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.codec import decode_tree
from moorage.api.core.namespace import ResourceQuota
from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim
from moorage.insight.answer.answer import answer
from moorage.insight.answer.finding import Answer, Fix
from moorage.insight.answer.summary import PendingSummary
from moorage.insight.explain.pods import explain
from moorage.insight.messages import full_name
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.whatif import DeletePods, apply
from tests.insight.fit.scenes import CONTEXT, gpus, template, using
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, device_class, only_on, wanting

Objects = Iterable[Any]


def of(kind: str, name: str) -> dict[str, Any]:
    """Return the metadata of a pod that a controller created."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}"}
    return {"ownerReferences": [{**owner, "controller": True}]}


def held(name: str, *devices: int, on: str = "n1", by: Sequence[str] = ()) -> ResourceClaim:
    """Return a claim that has GPUs of a node."""
    has = [(on, f"gpu-{number}") for number in devices]
    return claim(name, wanting(len(devices)), has=has, at=only_on(on), reserved=list(by))


def running(name: str, *claims: str, on: str = "n1", **fields: Any) -> Pod:
    """Return a pod on a node, with claims."""
    entries = [{"name": each, "resourceClaimName": each} for each in claims]
    return pod(name, resourceClaims=entries, nodeName=on, status={"phase": "Running"}, **fields)


def planned(*objects: Any) -> Plan:
    return plan(Snapshot.of([device_class(), *objects]), CONTEXT)


def said(found: Plan, name: str = "train") -> Answer:
    pending = next(each for each in found.pending if each.pod.metadata.name == name)
    return answer(found, explain(found, pending), CONTEXT)


def waits(found: Plan, name: str = "train") -> list[str]:
    """Return the advice to wait."""
    return [each.text for each in said(found, name).fixes if each.waits_for]


def event(found: Plan, name: str = "train") -> str:
    """Return what the live scheduler adds to its event."""
    pending = next(each for each in found.pending if each.pod.metadata.name == name)
    summary = PendingSummary(lambda: 0.0, Gates.parse(""))
    return summary(found.cluster, pending.pod, pending) or ""


def box(count: int, name: str = "n1") -> list[Any]:
    """Return a node with GPUs."""
    return [node(name), gpus(name, [0] * count)]


# --- who is waited for --------------------------------------------------------------------------


def test_three_workers_of_three_of_eight_are_not_told_to_wait_for_one_notebook() -> None:
    workers = [using("gpus", name=f"w-{n}", metadata=of("ReplicaSet", "w")) for n in range(3)]
    found = planned(
        *box(8),
        template(wanting(3)),
        held("note", 0, by=["book"]),
        running("book", "note"),
        *workers,
    )
    assert [each.pod.metadata.name for each in found.pending] == ["w-2"]
    assert waits(found, "w-2") == []
    assert "wait" not in event(found, "w-2")


def test_of_several_holders_one_is_named_if_that_is_enough() -> None:
    notes = [held(f"note-{n}", n, by=[f"book-{n}"]) for n in range(3)]
    books = [running(f"book-{n}", f"note-{n}") for n in range(3)]
    found = planned(*box(4), template(wanting(2)), using("gpus"), *notes, *books)
    assert waits(found) == [
        "wait until claim note-0 of pod book-0 frees its devices, or ask its owner"
    ]
    found = planned(*box(3), template(), using("gpus"), *notes, *books)
    assert event(found).endswith(
        "Fix: wait until claim note-0 of pod book-0 frees its devices, or ask its owner."
    )


def test_all_are_named_who_have_to_go_and_nobody_else() -> None:
    notes = [held(f"note-{n}", n, by=[f"book-{n}"]) for n in range(3)]
    books = [running(f"book-{n}", f"note-{n}") for n in range(3)]
    found = planned(*box(4), template(wanting(3)), using("gpus"), *notes, *books)
    (fix,) = [each for each in said(found).fixes if each.waits_for]
    assert [each.pods for each in fix.waits_for] == [("default/book-0",), ("default/book-1",)]
    assert fix.text == (
        "wait until claim note-0 of pod book-0, claim note-1 of pod book-1 free their devices, or "
        "ask their owners"
    )
    assert fix.node == "n1"


def test_nobody_waits_for_more_holders_than_a_sentence_names() -> None:
    notes = [held(f"note-{n}", n, by=[f"book-{n}"]) for n in range(8)]
    books = [running(f"book-{n}", f"note-{n}") for n in range(8)]
    found = planned(*box(8), template(wanting(8)), using("gpus"), *notes, *books)
    assert waits(found) == []


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_nobody_waits_for_pods_that_stay_with_their_node(kind: str) -> None:
    agent = running("agent", "mine", metadata=of(kind, "agent"))
    found = planned(*box(1), template(), using("gpus"), held("mine", 0, by=["agent"]), agent)
    assert waits(found) == []
    assert "wait" not in event(found)
    assert "in use by claim mine of pod agent" in said(found).cause


def test_nobody_waits_for_a_pod_that_comes_back_before_it() -> None:
    server = running("web", "mine", metadata=of("ReplicaSet", "web"), priority=10)
    found = planned(*box(1), template(), using("gpus"), held("mine", 0, by=["web"]), server)
    assert waits(found) == []
    job = running("web", "mine", metadata=of("Job", "web"), priority=10)
    found = planned(*box(1), template(), using("gpus"), held("mine", 0, by=["web"]), job)
    assert len(waits(found)) == 1


def test_a_pod_that_is_gone_frees_nothing_and_its_claim_is_to_be_deleted() -> None:
    found = planned(
        *box(2),
        template(),
        using("gpus"),
        *(held("new", 0, by=["svc"]), running("svc", "new"), held("old", 1, by=["gone"])),
    )
    (first, *_) = said(found).fixes
    assert first.text == "delete claim old, which is reserved for pod gone, which is gone"
    assert "claim old of pod gone, which is gone" in said(found).cause
    assert "Fix: delete claim old, which is reserved for pod gone" in event(found)


def test_where_no_running_pods_are_given_nobody_is_called_gone() -> None:
    found = planned(*box(1), template(), using("gpus"), held("old", 0, by=["book"]))
    assert waits(found) == ["wait until claim old of pod book frees its devices, or ask its owner"]


def test_a_claim_that_nobody_uses_is_to_be_deleted() -> None:
    found = planned(*box(1), template(), using("gpus"), held("left", 0))
    assert waits(found) == [
        "free claim left, which is reserved for nobody: delete it, or clear its status.allocation"
    ]
    about_to = pod("other", resourceClaims=[{"name": "c", "resourceClaimName": "left"}])
    found = planned(*box(1), template(), using("gpus"), held("left", 0), about_to)
    assert waits(found) == [
        "wait until claim left of pod other frees its devices, or ask its owner"
    ]


def test_a_shared_claim_is_free_once_all_its_users_have_gone() -> None:
    users = [running(name, "both") for name in ("one", "two")]
    both = held("both", 0, by=["one", "two"])
    found = planned(*box(1), template(), using("gpus"), both, *users)
    (fix,) = [each for each in said(found).fixes if each.waits_for]
    assert fix.waits_for[0].pods == ("default/one", "default/two")


def test_a_pod_that_comes_first_takes_what_gets_free() -> None:
    pods = [using("gpus", name=name) for name in ("first", "train")]
    book = running("book", "note", requests={"cpu": "1"})
    found = planned(*box(1), template(), held("note", 0, by=["book"]), book, *pods)
    assert len(waits(found, "first")) == 1
    ours = next(each for each in found.pending if each.pod.metadata.name == "train")
    alone = answer(found, explain(found, ours), CONTEXT)
    assert not any(each.waits_for for each in alone.fixes)


def quota(devices: int) -> ResourceQuota:
    hard = {"gpu.deviceclass.resource.k8s.io/devices": str(devices)}
    tree = {"metadata": {"name": "few", "namespace": "default"}, "spec": {"hard": hard}}
    return decode_tree(tree, ResourceQuota).value


def test_who_is_waited_for_does_not_depend_on_the_order_of_the_objects() -> None:
    notes = [held(f"note-{n}", n, by=[f"book-{n}"]) for n in range(2)]
    books = [running(f"book-{n}", f"note-{n}") for n in range(2)]
    rest = (*box(2), template(), quota(2), using("gpus"), *books)
    (text,) = waits(planned(*notes, *rest))
    assert "then wait until claim note-0 of pod book-0 frees its devices" in text
    assert waits(planned(*notes[::-1], *rest)) == [text]


def test_who_runs_is_waited_for_before_who_has_yet_to_start() -> None:
    found = planned(
        *box(2),
        template(),
        quota(2),
        held("note", 0, by=["book"]),
        running("book", "note"),
        using("gpus", name="early"),
        using("gpus"),
    )
    assert [each.pod.metadata.name for each in found.placed] == ["early"]
    (text,) = waits(found)
    assert "then wait until claim note of pod book frees its devices" in text


def test_a_change_that_helps_once_others_have_gone_names_them() -> None:
    found = planned(*box(2), template(wanting(3)), using("gpus"), held("note", 0, 1, by=["b"]))
    (fix,) = [each for each in said(found).fixes if each.waits_for]
    assert fix.text == (
        "ask for 2 instead of 3 in request gpu; then wait until claim note of pod b frees its "
        "devices, or ask its owner"
    )


# --- other reasons ------------------------------------------------------------------------------


def test_only_pods_are_waited_for_that_make_enough_room() -> None:
    here = [
        running("small", requests={"cpu": "1"}),
        running("agent", requests={"cpu": "2"}, metadata=of("DaemonSet", "agent")),
    ]
    found = planned(node("n1"), *here, pod("train", requests={"cpu": "2"}))
    assert waits(found) == ["wait until pod small leaves node n1, or ask its owner"]
    found = planned(node("n1"), *here, pod("train", requests={"cpu": "4"}))
    assert waits(found) == []


def test_all_pods_that_use_a_host_port_have_to_leave() -> None:
    here = [running(f"web-{n}", ports=[(f"10.0.0.{n}", "TCP", 80)]) for n in range(2)]
    found = planned(node("n1"), *here, pod("train", ports=[80]))
    assert waits(found) == ["wait until pods web-0, web-1 leave node n1, or ask their owners"]


LEAVING: dict[str, Any] = {
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": ["example.com/f"],
}


@pytest.mark.parametrize(
    ("objects", "advice"),
    [
        ([running("svc", "mine")], "end pod svc, or wait for it: then claim mine goes"),
        (
            [running("svc", "mine", metadata=of("DaemonSet", "svc"))],
            "end pod svc: then claim mine goes",
        ),
        (
            [running("other")],
            "end the reservation of claim mine for pod svc, which is gone",
        ),
    ],
)
def test_a_claim_that_is_deleted_goes_with_those_who_go(objects: list[Any], advice: str) -> None:
    has = [("n1", "gpu-0")]
    mine = claim("mine", has=has, at=only_on("n1"), reserved=["svc"], **LEAVING)
    user = pod("train", resourceClaims=[{"name": "c", "resourceClaimName": "mine"}])
    (first, *_) = said(planned(*box(1), mine, *objects, user)).fixes
    assert first.text == f"{advice} and create it anew, or use another claim"


# --- the law ------------------------------------------------------------------------------------


def test_whoever_the_anti_affinity_is_about_is_waited_for_unless_it_stays() -> None:
    rule = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    labels = {"labels": {"app": "x"}}
    here = node("n1", labels={"kubernetes.io/hostname": "n1"})
    lasting = running("other", metadata={**labels, **of("DaemonSet", "d")})
    leaving = running("other", metadata=labels)
    assert waits(planned(here, leaving, pod("train", affinity=away))) == [
        "wait until pod other ends, or ask its owner"
    ]
    assert waits(planned(here, lasting, pod("train", affinity=away))) == []


def after(found: Plan, fix: Fix) -> Snapshot:
    """Return the cluster once the plan has come true and those have gone whom a fix names."""
    there = found.after
    unused = {each.claim for each in fix.waits_for if each.is_unused}
    there = there.without(
        each for each in there.claims if (each.metadata.namespace, each.metadata.name) in unused
    )
    known = {full_name(each) for each in there.pods}
    names = [name for each in fix.waits_for if not each.is_unused for name in each.pods]
    assert known.issuperset(names)
    return apply(there, [DeletePods(tuple(names))], CONTEXT).snapshot


KINDS = st.sampled_from(["", "", "ReplicaSet", "DaemonSet", "Job", "unused"])


@st.composite
def worlds(draw: st.DrawFn) -> list[Any]:
    """Return nodes with GPUs, pods that have some of them, and pods that want more."""
    objects: list[Any] = []
    for name in [f"n{n}" for n in range(draw(st.integers(1, 2)))]:
        count = draw(st.integers(1, 4))
        objects += box(count, name)
        taken = draw(st.lists(st.tuples(st.integers(1, 2), KINDS, st.integers(0, 2)), max_size=4))
        for number, (size, kind, cpu) in enumerate(taken):
            free = [each for each in range(count) if each // 2 == number][:size]
            if free:
                objects += _taking(f"{name}-{number}", free, kind, cpu, name)
    for n in range(draw(st.integers(1, 3))):
        objects.append(template(wanting(draw(st.integers(1, 4))), name=f"t{n}"))
        owned = of("ReplicaSet", f"o{n}") if draw(st.booleans()) else {}
        asked = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=2))
        for number, (cpu, priority) in enumerate(asked):
            fields: dict[str, Any] = {"metadata": owned, "requests": {"cpu": str(cpu)}}
            objects.append(using(f"t{n}", name=f"p{n}-{number}", priority=priority, **fields))
    return objects


def _taking(key: str, devices: list[int], kind: str, cpu: int, on: str) -> list[Any]:
    by = [] if kind == "unused" else [f"by-{key}"]
    metadata = of(kind, key) if kind not in ("", "unused") else None
    asked = {"cpu": str(cpu)}
    users = [running(e, f"c-{key}", on=on, requests=asked, metadata=metadata) for e in by]
    return [held(f"c-{key}", *devices, on=on, by=by), *users]


@given(worlds())
def test_whoever_waits_for_those_who_are_named_gets_a_node(objects: list[Any]) -> None:
    found = planned(*objects)
    for pending in found.pending:
        for fix in answer(found, explain(found, pending), CONTEXT).fixes:
            if not fix.waits_for or ";" in fix.text:
                continue
            again = plan(after(found, fix), CONTEXT)
            placed = {full_name(each.pod) for each in again.placed}
            assert full_name(pending.pod) in placed, fix.text
