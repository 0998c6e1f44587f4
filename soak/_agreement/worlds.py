"""Random worlds: a cluster in which pods run, and manifests for it.

A fleet is made, and workloads are planned on it: what the plan places, runs, with the claims that
it got. Then nodes and devices change, some claims lose their pods, and new manifests come.

# past: the workloads that run
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from moorage.api.codec import encode_json
from moorage.api.documents import CORE, expand_lists, read
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.plan.planner import plan
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.validation.strategy import Context
from soak._agreement.fleet import CREATED, Fleet, Tree, made
from soak._agreement.work import PRIORITIES, SPACES, Work

NOW: Final = "2026-01-02T00:00:00Z"
CONTEXT: Final = Context(gates=Gates.parse(), now=Timestamp.parse(NOW), extensions=True)
NAMESPACE: Final = SPACES[0]
ORPHANED, FINISHED = 0.1, 0.05  # how often a running pod goes, or ends
SERVED: Final = 0.4


@dataclass(frozen=True)
class World:
    """The objects of a cluster, and manifests for it."""

    name: str
    cluster: tuple[Tree, ...]
    manifests: tuple[Tree, ...]
    is_served: bool = False  # also by a server, which takes as long as all else

    def __str__(self) -> str:
        return self.name


def random_world(seed: str) -> World:
    """Return a world; the seed decides which."""
    random = Random(seed)  # noqa: S311 - repeatable, not secret
    fleet = Fleet(random)
    spaces = [made("v1", "Namespace", name) for name in SPACES]
    priorities = [
        made("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
        for name, value in PRIORITIES.items()
    ]
    work = Work(random, "old", mistakes=False)
    past = [each for _ in range(random.randint(0, 5)) for each in work.workload()]
    running = _run([*spaces, *priorities, *fleet.objects(), *past])
    running = _left(random, running)
    fresh = {(each["kind"], each["metadata"]["name"]) for each in fleet.objects()}
    kept = [each for each in running if (each["kind"], each["metadata"]["name"]) not in fresh]
    added = fleet.age()
    if random.random() < 0.2:
        added.append(_quota(random))
    cluster = [*fleet.objects(), *kept, *added]
    work = Work(random, "new", mistakes=True)
    manifests = [each for _ in range(random.randint(1, 4)) for each in work.workload()]
    for _ in range(random.choice((0, 0, 1, 2))):
        manifests.insert(random.randint(0, len(manifests)), work.unused())
    is_served = random.random() < SERVED
    return World(f"world {seed}", tuple(map(_stored, cluster)), tuple(manifests), is_served)


def _run(trees: list[Tree]) -> list[Tree]:
    """Return the objects once a plan of them has happened."""
    builder = SnapshotBuilder(CONTEXT, is_cluster=True)
    for tree in trees:
        for document in read(json.dumps(tree).encode(), source="past", schema=CORE):
            for each in expand_lists(document):
                builder.add_document(each)
    builder.finish()
    assert not builder.refused, builder.refused
    after = plan(builder.snapshot(), CONTEXT).after
    return [json.loads(encode_json(each)) for each in after.objects()]


def _left(random: Random, trees: list[Tree]) -> list[Tree]:
    """Return the objects after some pods are gone or have ended, and all others run."""
    gone: set[tuple[str, str]] = set()
    found: list[Tree] = []
    for tree in trees:
        if tree["kind"] == "Pod" and tree["spec"].get("nodeName"):
            is_free = not tree["metadata"].get("ownerReferences")
            if is_free and random.random() < ORPHANED:
                gone.add((tree["metadata"]["namespace"], tree["metadata"]["name"]))
                continue
            phase = "Succeeded" if is_free and random.random() < FINISHED else "Running"
            tree.setdefault("status", {})["phase"] = phase
        found.append(tree)
    return [each for each in (_released(tree, gone) for tree in found) if each is not None]


def _released(tree: Tree, gone: set[tuple[str, str]]) -> Tree | None:
    """Return a claim without reservations for pods that are gone; None if it was theirs alone."""
    if tree["kind"] != "ResourceClaim":
        return tree
    space = tree["metadata"]["namespace"]
    owners = tree["metadata"].get("ownerReferences") or []
    if any((space, each["name"]) in gone for each in owners):
        return None
    status = tree.get("status") or {}
    kept = [each for each in status.get("reservedFor") or [] if (space, each["name"]) not in gone]
    if kept:
        status["reservedFor"] = kept
    else:
        status.pop("reservedFor", None)
    return tree


def _quota(random: Random) -> Tree:
    hard: dict[str, Any] = random.choice(
        (
            {"gpu.example.com.deviceclass.resource.k8s.io/devices": "3"},
            {"count/resourceclaims.resource.k8s.io": "3"},
            {"pods": "4"},
            {"requests.cpu": "4"},
        )
    )
    return made("v1", "ResourceQuota", "few", random.choice(SPACES), spec={"hard": hard})


def _stored(tree: Tree) -> Tree:
    """Return an object as a server has it."""
    metadata = tree["metadata"]
    name = "/".join((tree["kind"], metadata.get("namespace", ""), metadata["name"]))
    uid = metadata.get("uid") or f"uid-of-{name}"
    created = metadata.get("creationTimestamp") or CREATED
    known = {"uid": uid, "creationTimestamp": created, "resourceVersion": "1"}
    return tree | {"metadata": {**metadata, **known}}
