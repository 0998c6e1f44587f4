"""Whole scenarios: manifests applied to a cluster, and what became of pods and claims.

A folder has `scenarios.json`, the manifests that each scenario applies in order, and for each
scenario the objects that a real control plane had in the end. Manifests are planned one after the
other. Compared are the node of every pod, its condition with the message, its statuses of claims,
and of every claim the allocation and the reservations; not uids, times and made-up names.

The order in which the pods of one manifest came to be scheduled is not recorded: a claim may have
been made later for one than for the other. So another order than the written one may explain the
recording. Scenarios that need running controllers, or time to pass, are counted separately.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from conformance.runner import (
    EQUAL,
    Apart,
    Case,
    Outcome,
    Suite,
    UnreadableError,
    compared,
)
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core import Node
from moorage.api.documents import CORE, Document, expand_lists, read
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.scheduler.scheduling_cycle import Pending
from moorage.validation.strategy import Context

NOW = Timestamp.parse("2026-11-15T07:00:00Z")
# The capacity of the recorded nodes; the manifests leave the status out.
RECORDED_STATUS = {"cpu": "16", "memory": "64Gi", "pods": "110"}

# Scenarios that were recorded on a cluster with more in it than they list.
RECORDED_BESIDES = {
    "20-pending-n-ext-insufficient": ["04-extended-explicit"],
    "20-pending-n2-ext-insufficient": ["04-extended-explicit"],
}

ORDERS_MAX = 200

POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
SHARE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def open_suite() -> Suite:
    """Return the suite."""
    return GoldenSuite()


class GoldenSuite(Suite):
    """A case is one scenario of a folder."""

    def fits(self, case: Case) -> bool:
        """Return whether the case is a scenario."""
        return "scenario" in case.fields

    def cases(self, target: Path) -> Iterator[Case]:
        """Give the scenarios of a folder."""
        for scenario in read_json(target / "scenarios.json"):
            yield Case(scenario["scenario"], {**scenario, "folder": str(target)}, b"")

    def compare(self, case: Case) -> Outcome:
        """Plan the scenario and compare what becomes of it."""
        if case.fields["needsLiveControllers"]:
            return Apart("scenarios that need live controllers")
        folder = Path(case.fields["folder"])
        recorded = read_json(folder / f"{case.id}.json")
        scenario = Scenario(folder, self.manifests(case))
        if "pods" not in recorded:
            return compared(recorded, scenario.played().refusals())
        first: Outcome | None = None
        for orders in islice(scenario.orders(), ORDERS_MAX):
            outcome = _compared_objects(recorded, scenario.played(orders), case.fields)
            if outcome == EQUAL:
                return EQUAL
            first = first or outcome
        assert first is not None
        return first

    def figures(self) -> Iterator[str]:
        """Print which scenarios got more manifests than they list."""
        for name in self._amended:
            yield f"{name}: with {', '.join(RECORDED_BESIDES[name])}, which it builds on unsaid"

    def __init__(self) -> None:
        self._amended: list[str] = []

    def manifests(self, case: Case) -> list[str]:
        """Return the names of the manifests that a scenario was recorded with."""
        listed: list[str] = list(case.fields["apply"])
        besides = [name for name in RECORDED_BESIDES.get(case.id, ()) if name not in listed]
        if besides:
            self._amended.append(case.id)
        return [*listed[:1], *besides, *listed[1:]]


# --- playing ------------------------------------------------------------------------------------


class Scenario:
    """The manifests of a scenario, read."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._manifests = [list(documents_of(folder / "manifests" / f"{n}.yaml")) for n in names]

    def orders(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Give the orders in which pods of each manifest may have come, the written one first."""
        counts = [sum(map(_is_pod, documents)) for documents in self._manifests]
        return product(*(permutations(range(count)) for count in counts))

    def orders_of_one(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Give orders in which the pods of one manifest come otherwise than written."""
        for number, documents in enumerate(self._manifests):
            count = sum(map(_is_pod, documents))
            for order in permutations(range(count)):
                if count > 1:
                    others: list[tuple[int, ...]] = [()] * len(self._manifests)
                    yield (*others[:number], order, *others[number + 1 :])

    def manifests(self, orders: Sequence[Sequence[int]] = ()) -> list[list[Document]]:
        """Return the objects of each manifest, with their pods in some order, and last."""
        orders = orders or [()] * len(self._manifests)
        return list(map(_reordered, self._manifests, orders))

    def played(self, orders: Sequence[Sequence[int]] = ()) -> Played:
        """Return what becomes of the manifests, applied one after the other."""
        return Played(self.manifests(orders))


def documents_of(path: Path) -> Iterator[Document]:
    """Give the objects of a manifest."""
    for document in read(path.read_bytes(), source=path.name, schema=CORE):
        yield from expand_lists(document)


def _is_pod(document: Document) -> bool:
    return isinstance(document.tree, dict) and document.tree.get("kind") == "Pod"


def _reordered(documents: list[Document], order: Sequence[int]) -> list[Document]:
    pods = [document for document in documents if _is_pod(document)]
    others = [document for document in documents if not _is_pod(document)]
    return [*others, *(pods[place] for place in order or range(len(pods)))]


class Played:
    """Manifests, planned one after the other."""

    def __init__(self, manifests: Iterable[list[Document]]) -> None:
        context = Context(gates=Gates.parse(""), now=NOW)
        intake = SnapshotBuilder(context)
        self._results: dict[str, Pending] = {}
        self.state = Snapshot()
        for documents in manifests:
            known = {id(each) for each in intake.snapshot().objects()}
            for document in documents:
                intake.add_document(document)
            fresh = [each for each in intake.snapshot().objects() if id(each) not in known]
            planned = plan(self.state.with_objects(map(_with_status, fresh)), context)
            self._note(planned)
            self.state = planned.after
        self._refused = intake.refused

    def _note(self, planned: Plan) -> None:
        for each in planned.results:
            key = f"{each.pod.metadata.namespace}/{each.pod.metadata.name}"
            self._results.pop(key, None)
            if isinstance(each, Pending):
                self._results[key] = each

    def objects(self) -> dict[str, Any]:
        """Return pods and claims as JSON has them, with the conditions of pending pods."""
        pods = []
        for pod in self.state.pods:
            tree = to_tree(pod)
            tree.setdefault("status", {})["conditions"] = list(self._conditions(tree))
            pods.append(tree)
        return {"pods": pods, "resourceclaims": [to_tree(claim) for claim in self.state.claims]}

    def refusals(self) -> dict[str, str]:
        """Return what kubectl says of the objects that are refused, by a short name of the kind."""
        found = {}
        for message in self._refused:
            _, _, _, subject, said = message.split(":", 4)
            kind, name = subject.strip().split()
            short = "template" if kind == "ResourceClaimTemplate" else "claim"
            name = name.rpartition("/")[2]
            found[short] = f'The {kind} "{name}" is invalid: {said.strip()}\n'
        return found

    def _conditions(self, pod: Mapping[str, Any]) -> Iterator[dict[str, str]]:
        metadata = pod["metadata"]
        pending = self._results.get(f"{metadata['namespace']}/{metadata['name']}")
        if pending is None:
            yield {"type": "PodScheduled", "status": "True"}
        elif pending.message:
            yield {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulerError" if pending.is_fault else "Unschedulable",
                "message": pending.message,
            }


def _with_status(value: Any) -> Any:
    if not isinstance(value, Node) or value.status.allocatable:
        return value
    status = {"status": {"allocatable": RECORDED_STATUS, "capacity": RECORDED_STATUS}}
    return replace(value, status=decode_tree(status, Node).value.status)


# --- comparing ----------------------------------------------------------------------------------


def _compared_objects(
    recorded: Mapping[str, Any], played: Played, fields: Mapping[str, Any]
) -> Outcome:
    nodes = [node.metadata.name for node in played.state.nodes]
    return compared(*essences(recorded, played.objects(), nodes, fields))


def essences(
    recorded: Mapping[str, Any],
    ours: Mapping[str, Any],
    nodes: Sequence[str],
    fields: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the compared parts of both; without nodes, where nothing decides between them."""
    theirs = recorded
    if not fields["compareNode"]:
        theirs, ours = without_nodes(nodes, theirs), without_nodes(nodes, ours)
    expected = _essence(theirs, devices_vary=fields["deviceInMessageMayVary"])
    actual = _essence(ours, devices_vary=fields["deviceInMessageMayVary"])
    # The cluster also has the objects that the scenario builds on.
    kept = {kind: {k: v for k, v in actual[kind].items() if k in expected[kind]} for kind in actual}
    return expected, kept


def without_nodes(nodes: Sequence[str], objects: Any) -> Any:
    """Return a tree without the names of nodes."""
    text = json.dumps(objects)
    for name in nodes:
        text = text.replace(name, "<node>")
    return json.loads(text)


def _essence(objects: Mapping[str, Any], *, devices_vary: bool) -> dict[str, Any]:
    """Return the compared parts, with generated names replaced by their placeholders."""
    objects = unnamed(objects)
    pods = {_key(pod): _pod(pod, devices_vary=devices_vary) for pod in objects["pods"]}
    claims = {_key(claim): _claim(claim) for claim in objects["resourceclaims"]}
    return {"pods": pods, "claims": claims}


def unnamed(objects: Mapping[str, Any]) -> Any:
    """Return pods and claims with placeholders for generated names."""
    text = json.dumps({key: objects[key] for key in ("pods", "resourceclaims")})
    for claim in objects["resourceclaims"]:
        metadata = claim["metadata"]
        owners = [each["name"] for each in metadata.get("ownerReferences", ())]
        if owners:
            entry = metadata.get("annotations", {}).get(POD_CLAIM_ANNOTATION, "extended")
            text = text.replace(metadata["name"], f"<{owners[0]}.{entry}>")
    return json.loads(text)


def _key(value: Mapping[str, Any]) -> str:
    return f"{value['metadata']['namespace']}/{value['metadata']['name']}"


def _pod(pod: Mapping[str, Any], *, devices_vary: bool) -> dict[str, Any]:
    status = pod.get("status", {})
    conditions = [each for each in status.get("conditions", ()) if each["type"] == "PodScheduled"]
    scheduled = {
        key: value
        for each in conditions
        for key, value in each.items()
        if key in ("status", "reason", "message")
    }
    if devices_vary and "message" in scheduled:
        scheduled["message"] = re.sub(r"on device [^:\s]+", "on device …", scheduled["message"])
    kept = ("extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")
    return {
        "node": pod["spec"].get("nodeName"),
        "scheduled": scheduled,
        "claims": status.get("resourceClaimStatuses"),
        **{field: status.get(field) for field in kept},
    }


def _claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    metadata, status = claim["metadata"], claim.get("status", {})
    allocation = dict(status.get("allocation") or {})
    allocation.pop("allocationTimestamp", None)
    return {
        "spec": claim["spec"],
        "annotations": metadata.get("annotations") or {},
        "finalizers": metadata.get("finalizers") or [],
        "owners": [
            {key: each.get(key) for key in ("kind", "name", "controller")}
            for each in metadata.get("ownerReferences", ())
        ],
        "allocation": json.loads(SHARE_ID.sub("<share>", json.dumps(allocation))),
        "reservedFor": sorted(
            (each.get("apiGroup", ""), each["resource"], each["name"])
            for each in status.get("reservedFor", ())
        ),
    }


def read_json(path: Path) -> Any:
    """Return the content of a file."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as fault:
        raise UnreadableError(f"{path}: cannot be read: {fault}") from fault
