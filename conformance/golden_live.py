"""Whole scenarios again, live: manifests applied to a cluster of ours, and what became of it.

As in the suite `golden`, but nothing is planned: server, controllers and scheduler run, and time
passes, in simulation. Compared are, besides what `golden` compares, the status of groups, of taint
rules and of requests about pools, and the events. Messages of ours may say more.

The recordings do not list the actions of people and drivers between manifests, but the results show
them: a claim that is being deleted was deleted before the next manifest, and the status of devices
in a claim was reported by its driver. `-t25s` in a name: 25 s after the last manifest.

The order in which pods came to be scheduled is not recorded, as there: if creating all at once does
not give the recorded result, pods come one after the other, also in other orders than the written
one. Events of a pod on its way to a node depend on that order as well, so they are not required
here. Where nothing decides between two nodes we take the first by name; Kubernetes may have taken
another, so a recording is also compared with the names of the two nodes exchanged, and where it
builds on one in which nothing decides, without these names.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from conformance._live import (
    MERGE,
    NODES,
    Live,
    RefusedError,
    credentials_folder,
    gates_of,
    live_cluster,
    path_of,
)
from conformance._recordings import Comparison, is_same_event, plain_event, plain_object
from conformance.golden import (
    GoldenSuite,
    Scenario,
    essences,
    read_json,
    unnamed,
    without_nodes,
)
from conformance.runner import EQUAL, Case, Mismatch, Outcome, Suite
from moorage.api.documents import Document
from moorage.kit.clock import run_simulated

Tree = dict[str, Any]

SETTLE_S = 30.0  # longer than anything that is waited for in a recording
WAITED = re.compile(r"-t(\d+)s$")
ORDERS_MAX = 60
POD_S = 2.0  # between pods that come one after the other

CLAIM = "resource.k8s.io/v1", "ResourceClaim"
KINDS = {"pods": ("v1", "Pod"), "resourceclaims": CLAIM}
STATUSES = {
    "podgroups": ("scheduling.k8s.io/v1beta1", "PodGroup"),
    "rule": ("resource.k8s.io/v1", "DeviceTaintRule"),
    "requests": ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest"),
}
SHORT = {"ResourceClaim": "claim", "ResourceClaimTemplate": "template"}

# Scenarios that were recorded on a cluster with more in it than they list: this came before the
# last manifest.
RECORDED_BESIDES = {"10-poolstatus": ["09b-taintrule"]}


def open_suite() -> Suite:
    """Return the suite."""
    return GoldenLiveSuite()


class GoldenLiveSuite(GoldenSuite):
    """A case is one scenario of a folder."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = credentials_folder()

    def compare(self, case: Case) -> Outcome:
        """Play the scenario and compare what becomes of it."""
        folder = Path(case.fields["folder"])
        recorded = read_json(folder / f"{case.id}.json")
        names = self.manifests(case)
        names[-1:-1] = RECORDED_BESIDES.get(case.id, ())
        fields = {**case.fields, "compareNode": self._is_decided(case)}
        first: list[str] = []
        for pod_s, manifests in islice(_arrivals(Scenario(folder, names)), ORDERS_MAX):
            play = Play(manifests, pod_s, _wait_s(case.id))
            played = run_simulated(_played(play, recorded, self._folder))
            found = min(_differences(recorded, played, fields), key=len)
            if not found:
                return EQUAL
            first = first or found
        return Mismatch(tuple(first))

    def _is_decided(self, case: Case) -> bool:
        """Return whether something decides between nodes, also in what the scenario builds on."""
        every = read_json(Path(case.fields["folder"]) / "scenarios.json")
        open_ones = {each["scenario"] for each in every if not each["compareNode"]}
        return case.id not in open_ones and open_ones.isdisjoint(case.fields["apply"])


def _wait_s(name: str) -> float:
    waited = WAITED.search(name)
    return float(waited[1]) if waited else SETTLE_S


def _arrivals(scenario: Scenario) -> Iterator[tuple[float, list[list[Document]]]]:
    """Give ways in which the pods may have come: all at once, or one by one in some order."""
    yield 0.0, scenario.manifests()
    for orders in scenario.orders_of_one():
        yield POD_S, scenario.manifests(orders)


# --- playing --------------------------------------------------------------------------------------


class Play(NamedTuple):
    """Manifests, and how long to wait after each pod and after the last manifest."""

    manifests: Sequence[Sequence[Document]]
    pod_s: float
    last_s: float


async def _played(play: Play, recorded: Tree, folder: Path) -> Tree:
    """Return what becomes of manifests, in the form of a recording."""
    async with live_cluster(folder, gates_of("all")) as live:
        hands = Hands(live, recorded)
        for number, documents in enumerate(play.manifests, start=1):
            for tree in map(_tree, documents):
                await hands.apply(tree)
                if tree["kind"] == "Pod":
                    await asyncio.sleep(play.pod_s)
            await asyncio.sleep(play.last_s if number == len(play.manifests) else SETTLE_S)
            await hands.delete_what_was()
        await hands.report()
        return await hands.found()


def _tree(document: Document) -> Tree:
    assert isinstance(document.tree, dict)
    return document.tree


class Hands:
    """What people and drivers did to the recorded cluster, done to ours."""

    def __init__(self, live: Live, recorded: Tree) -> None:
        self._live = live
        self._recorded = recorded
        self._refusals: dict[str, str] = {}

    async def apply(self, tree: Tree) -> None:
        """Apply an object as kubectl does."""
        metadata = tree["metadata"]
        namespace = metadata.get("namespace", "default")
        try:
            await self._live.create(tree, namespace)
        except RefusedError as refused:
            if refused.status["reason"] == "AlreadyExists":
                path = path_of(tree["apiVersion"], tree["kind"], namespace, metadata["name"])
                await self._live.ask("PATCH", path, tree, content_type=MERGE)
            else:
                said = refused.status["message"].partition(" is invalid: ")[2]
                kind = str(tree["kind"])
                text = f'The {kind} "{metadata["name"]}" is invalid: {said}\n'
                self._refusals[SHORT.get(kind, kind)] = text
        if tree["kind"] == "Node":
            await self._live.furnish_node(metadata["name"])

    async def delete_what_was(self) -> None:
        """Delete claims that were being deleted, once they are there."""
        for claim in self._recorded.get("resourceclaims", ()):
            metadata = claim["metadata"]
            is_asked = "deletionTimestamp" in metadata and "ownerReferences" not in metadata
            if is_asked and await self._find(metadata["namespace"], metadata["name"]):
                path = path_of(*CLAIM, metadata["namespace"], metadata["name"])
                await self._live.ask("DELETE", path)

    async def _find(self, namespace: str, name: str) -> bool:
        claims = await self._live.all(*CLAIM, namespace)
        return any(claim["metadata"]["name"] == name for claim in claims)

    async def report(self) -> None:
        """Report what drivers had reported of devices."""
        theirs = unnamed(_claims(self._recorded))["resourceclaims"]
        reported = {
            _place(claim): claim["status"]["devices"]
            for claim in theirs
            if claim.get("status", {}).get("devices")
        }
        if not reported:
            return
        ours = await self._live.all(*CLAIM)
        for claim, shown in zip(
            ours, unnamed({"pods": [], "resourceclaims": ours})["resourceclaims"], strict=True
        ):
            if _place(shown) in reported:
                metadata = claim["metadata"]
                path = path_of(*CLAIM, metadata["namespace"], metadata["name"])
                body = {"status": {"devices": reported[_place(shown)]}}
                await self._live.ask("PATCH", f"{path}/status", body, content_type=MERGE)
        await asyncio.sleep(SETTLE_S)

    async def found(self) -> Tree:
        """Return all that recordings have."""
        found: Tree = {name: await self._live.all(*kind) for name, kind in KINDS.items()}
        for name, kind in STATUSES.items():
            found[name] = await self._live.all(*kind)
        found["events"] = await self._live.all("v1", "Event")
        return {**found, **self._refusals}


def _claims(recorded: Mapping[str, Any]) -> Tree:
    return {"pods": [], "resourceclaims": recorded.get("resourceclaims", [])}


def _place(value: Mapping[str, Any]) -> tuple[str, str]:
    return value["metadata"]["namespace"], value["metadata"]["name"]


# --- comparing ------------------------------------------------------------------------------------


def _differences(recorded: Tree, played: Tree, fields: Mapping[str, Any]) -> Iterator[list[str]]:
    """Give what differs, and then what differs if two nodes are taken for each other."""
    for theirs in (recorded, _exchanged(recorded)):
        yield [*_object_differences(theirs, played, fields), *_other_differences(theirs, played)]


def _exchanged(tree: Tree) -> Tree:
    one, other = NODES
    text = json.dumps(tree).replace(one, "\0").replace(other, one).replace("\0", other)
    exchanged: Tree = json.loads(text)
    return exchanged


def _object_differences(recorded: Tree, played: Tree, fields: Mapping[str, Any]) -> Iterator[str]:
    if "pods" not in recorded:
        return
    expected, actual = essences(recorded, played, NODES, fields)
    yield from Comparison().differences("", expected, actual)
    namespaces = {pod["metadata"]["namespace"] for pod in recorded["pods"]}
    names = {**_renaming(played), **_renaming(recorded)}
    theirs = [_event(event, names) for event in recorded["events"]]
    ours = [
        _event(plain_event(event), names)
        for event in played["events"]
        if event["metadata"]["namespace"] in namespaces
    ]
    if not fields["compareNode"]:
        theirs, ours = without_nodes(NODES, theirs), without_nodes(NODES, ours)
    if fields["deviceInMessageMayVary"]:
        theirs, ours = _without_devices(theirs), _without_devices(ours)
    placed = {f"Pod/{pod['metadata']['name']}" for pod in played["pods"] if _has_node(pod)}
    yield from _event_differences(theirs, ours, placed)


def _has_node(pod: Tree) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _renaming(objects: Tree) -> dict[str, str]:
    """Return the placeholders for generated names of claims."""
    claims = objects["resourceclaims"]
    shown = unnamed({"pods": [], "resourceclaims": claims})["resourceclaims"]
    return {
        claim["metadata"]["name"]: each["metadata"]["name"]
        for claim, each in zip(claims, shown, strict=True)
    }


def _event(event: Tree, names: Mapping[str, str]) -> Tree:
    message = event["message"]
    for name, shown in names.items():
        message = message.replace(name, shown)
    source = event.get("from") or event.get("reportingComponent")
    return {
        "type": event["type"],
        "reason": event["reason"],
        "object": event["object"],
        "message": message,
        "from": source,
    }


def _without_devices(events: list[Tree]) -> list[Tree]:
    return [
        {**each, "message": re.sub(r"on device [^:\s]+", "on device …", each["message"])}
        for each in events
    ]


def _event_differences(
    theirs: list[Tree], ours: list[Tree], placed: Container[str]
) -> Iterator[str]:
    for event in theirs:
        is_on_the_way = event["reason"] == "FailedScheduling" and event["object"] in placed
        if not is_on_the_way and not any(is_same_event(event, each) for each in ours):
            yield f"events: Kubernetes {json.dumps(event)}, Moorage has none"
    for event in ours:
        if not any(is_same_event(each, event) for each in theirs):
            yield f"events: Kubernetes has none, Moorage {json.dumps(event)}"


def _other_differences(recorded: Tree, played: Tree) -> Iterator[str]:
    for name in STATUSES:
        values = recorded.get(name) or []
        theirs = _statuses(values if isinstance(values, list) else [values], recorded)
        ours = {k: v for k, v in _statuses(played[name], played).items() if k in theirs}
        yield from Comparison().differences(name, theirs, ours)
    for short in SHORT.values():
        yield from Comparison().differences(
            short, {"message": recorded.get(short, "")}, {"message": played.get(short, "")}
        )


def _statuses(values: list[Tree], objects: Tree) -> Tree:
    names = _renaming({"resourceclaims": objects.get("resourceclaims", [])})
    text = json.dumps({each["metadata"]["name"]: plain_object(each) for each in values})
    for name, shown in names.items():
        text = text.replace(name, shown)
    found: Tree = json.loads(text)
    for each in found.values():
        each["metadata"].pop("annotations", None)  # kubectl's own
    return found
