"""The cluster of the examples, and how changes of it are asked about."""

from __future__ import annotations

from pathlib import Path

from moorage.api.documents import CORE, expand_lists, read
from moorage.api.gates import Gates
from moorage.insight.plan.planner import plan
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.whatif import ClusterChange, Difference, difference
from moorage.validation.strategy import Context
from tests.insight.snapshot.test_builder import NOW

CONTEXT = Context(gates=Gates.parse(""), now=NOW)
TWO_NODES = Path(__file__).parents[3] / "examples" / "two-nodes" / "cluster.yaml"

# Two nodes with two GPUs each: gpu-0 of both is for pods of a replica set, gpu-1 of node-1 for a
# bare pod, gpu-1 of node-2 is free.
FIRST, SECOND, NOTEBOOK = "team-a/inference-7xk2p", "team-a/inference-m9d4q", "team-a/notebook"


def cluster(*texts: str, context: Context = CONTEXT) -> Snapshot:
    """Return the cluster of the example, with more objects."""
    intake = SnapshotBuilder(context, namespace="team-a")
    for text in (TWO_NODES.read_text(encoding="utf-8"), *texts):
        for document in read(text.encode(), source="test", schema=CORE):
            for each in expand_lists(document):
                intake.add_document(each)
    assert not intake.refused
    assert not intake.unreadable
    return intake.snapshot()


def objects(*texts: str) -> Snapshot:
    """Return objects alone."""
    return cluster(*texts).without(cluster().objects())


def ask(
    *changes: ClusterChange, on: Snapshot | None = None, context: Context = CONTEXT
) -> Difference:
    """Return what changes come to."""
    return difference(
        cluster() if on is None else on, changes, context, lambda found: plan(found, context)
    )


def turns(found: Difference) -> dict[str, str]:
    """Return how pods fare that fare otherwise, and where they are."""
    return {
        each.pod: f"{each.kind} {(each.after and each.after.node) or '-'}" for each in found.pods
    }


def free(found: Difference) -> dict[str, tuple[int, int]]:
    """Return how many devices are free, before and after, by node."""
    return {each.node: (each.free_before, each.free_after) for each in found.devices}
