"""Situations played in a live cluster: what the scheduler writes, and what `moor explain` says.

Server, controllers and scheduler run in one process, in simulated time. `explain` then reads all
objects of the server, as `--live` does.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from moorage.api.codec import to_tree
from moorage.api.core import Event, Pod
from moorage.api.gates import Gates
from moorage.cli.explain import command as explain
from moorage.client.contract import list_all
from moorage.cluster.embedded import embedded
from moorage.cluster.programs import ProgramContext
from moorage.hardware.catalogue import Catalogue
from moorage.insight.answer.summary import PendingSummary
from moorage.insight.messages import full_name
from moorage.kit.clock import LoopClock, run_simulated
from moorage.sources.live_source import ClusterReader
from moorage.store.memory import open_memory
from tests.stories.stage import FINALIZER, Stage, kind_of, placed, trees_of

SETTLED_S = 60.0
BARE = "a-bare"


class Outcome(NamedTuple):
    """What became of a situation."""

    refused: tuple[str, ...]  # objects that the server did not take, and why
    conditions: dict[str, str]  # by pod that the scheduler tried: its condition
    events: dict[str, list[str]]  # by pod: the messages of FailedScheduling
    causes: dict[str, str]  # by pending pod: the cause, as `moor explain` has it
    gated: int  # pods that the scheduler, as Kubernetes', does not try and says nothing about

    def disagreements(self) -> list[str]:
        """Return the pods of which the scheduler says something else than `moor explain`."""
        return [
            f"{pod}: {cause!r} is not in {text!r}"
            for pod, cause in self.causes.items()
            for text in (self.conditions.get(pod, cause), self.events.get(pod, [cause])[-1])
            if cause not in text
        ]


class Play:
    """A live cluster, and what one does with it."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self._folder = stage, folder
        self.refused: list[str] = []

    async def add(self, trees: Iterable[dict[str, Any]]) -> None:
        """Create objects, pods without a node last, and wait until nothing moves."""
        given = [placed(tree, "default") for tree in trees]
        ordered = sorted([*given, *_users(given)], key=_turn)
        for _, together in groupby(ordered, _turn):
            for tree in together:
                await self._add(tree)
            await asyncio.sleep(SETTLED_S)

    async def _add(self, tree: dict[str, Any]) -> None:
        answer = await self.stage.send(tree)
        metadata = tree["metadata"]
        if answer.status >= 300:
            self.refused.append(f"{tree['kind']} {metadata['name']}: {answer.message}")
            return
        if tree["kind"] not in ("ResourceClaim", "Pod") or "status" not in tree:
            return
        kind, space, name = kind_of(tree), metadata["namespace"], metadata["name"]
        if tree["kind"] == "ResourceClaim":
            path = f"/apis/resource.k8s.io/v1/namespaces/{space}/resourceclaims/{name}"
            body, patch = {"metadata": {"finalizers": [FINALIZER]}}, "application/merge-patch+json"
            await self.stage.ask("PATCH", path, body, content_type=patch)
            await asyncio.sleep(1)
            for each in tree["status"].get("reservedFor", ()):
                found = self.stage.pod(each["name"], space)
                each["uid"] = each.get("uid", "") if found is None else found.metadata.uid
        await self.stage.set_status(kind, space, name, tree["status"])

    async def outcome(self) -> Outcome:
        """Return what the scheduler wrote, and what `moor explain` says of the same moment."""
        cluster = self.stage.cluster
        objects = list((await ClusterReader(cluster.admin, ("default",)).found()).values)
        events: dict[str, list[str]] = {}
        found = (await list_all(cluster.admin, Event)).values
        for event in sorted(found, key=lambda each: str(each.event_time)):
            if event.reason == "FailedScheduling":
                events.setdefault(_about(event), []).append(event.message)
        conditions = {
            full_name(each): self.stage.message(each.metadata.name, each.metadata.namespace)
            for each in objects
            if isinstance(each, Pod) and not each.spec.node_name and full_name(each) in events
        }
        gated = cluster.scheduling.scheduler.queue.counts()["gated"]
        return Outcome(tuple(self.refused), conditions, events, self._causes(objects), gated)

    def _causes(self, objects: list[Any]) -> dict[str, str]:
        items = [{**to_tree(e), "apiVersion": e.api_version, "kind": e.kind} for e in objects]
        path = self._folder / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        result = CliRunner().invoke(explain, ["--on", str(path), "-o", "json"])
        assert result.exit_code in (0, 1), result.output
        pending = json.loads(result.stdout)["pending"]
        return {pod: each["cause"] for each in pending for pod in each["pods"]}


@asynccontextmanager
async def playing(folder: Path, gates: Gates | None = None) -> AsyncIterator[Play]:
    """Run a cluster, in simulated time."""
    clock = LoopClock()
    around = ProgramContext(gates or Gates.parse(), clock, random.Random(0).random)
    async with (
        open_memory(clock=lambda: clock.now().timestamp()) as store,
        embedded(
            folder, around, store=store, explain=PendingSummary(clock.monotonic, around.gates)
        ) as cluster,
    ):
        yield Play(Stage(cluster), folder)


def played(folder: Path, *trees: dict[str, Any]) -> Outcome:
    """Return what becomes of objects."""

    async def run() -> Outcome:
        async with playing(folder) as play:
            await play.add(trees)
            return await play.outcome()

    return run_simulated(run())


def trees_in(*paths: Path) -> list[dict[str, Any]]:
    """Return the manifests of files."""
    return [tree for path in paths for tree in trees_of(path)]


def machines(profile: str) -> list[dict[str, Any]]:
    """Return the nodes, classes and slices of machines."""
    fleet = Catalogue().fleet(profile)
    return [to_tree(each) for each in (*fleet.nodes, *fleet.classes, *fleet.slices)]


def _about(event: Event) -> str:
    return f"{event.involved_object.namespace}/{event.involved_object.name}"


def bare_nodes(count: int) -> list[dict[str, Any]]:
    """Return nodes without devices, which come before all others by name."""
    room = {"cpu": "10m", "memory": "1Mi", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"{BARE}-{number}"},
            "status": {"capacity": room, "allocatable": room},
        }
        for number in range(count)
    ]


def _users(trees: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the pods for which claims are reserved: a controller takes that back without them."""
    pods = {tree["metadata"]["name"] for tree in trees if tree["kind"] == "Pod"}
    nodes = [tree["metadata"]["name"] for tree in trees if tree["kind"] == "Node"]
    for tree in trees:
        status, metadata = tree.get("status", {}), tree["metadata"]
        for each in status.get("reservedFor", ()) if tree["kind"] == "ResourceClaim" else ():
            if each["name"] not in pods:
                yield {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": each["name"], "namespace": metadata["namespace"]},
                    "spec": {
                        "nodeName": nodes[0],
                        "containers": [{"name": "main", "image": "registry.example.com/app:1"}],
                        "resourceClaims": [
                            {"name": "devices", "resourceClaimName": metadata["name"]}
                        ],
                    },
                }


def _turn(tree: dict[str, Any]) -> int:
    match tree:
        case {"kind": "Namespace"}:
            return 0
        case {"kind": "Pod", "spec": {"nodeName": str()}}:
            return 2
        case {"kind": "ResourceClaim", "status": _}:
            return 3
        case {"kind": "Pod" | "Deployment" | "Job" | "ReplicaSet" | "StatefulSet"}:
            return 4
    return 1
