"""Findings: the cause of a pending pod in one sentence, and proposals for what to do about it.

# proposal: something to do, as text, with the changes of objects that it means, if any
# fix: a proposal that was tried, with the node that the pod would get; or advice
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.insight.answer.edits import ObjectChange, changed_tree
from mooring.insight.answer.rehearsal import Rehearsal
from mooring.insight.answer.sources import Sources
from mooring.insight.explain.pods import Explanation
from mooring.insight.expressions.published_devices import PublishedDevices
from mooring.insight.snapshot.builder import RefusedObject
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.scheduler.cluster import Cluster
from mooring.validation.strategy import Context

CAUSE_LENGTH_MAX: Final = 160
Unread = Mapping[str, tuple[str, ...]]  # kinds that could not be read, but in these namespaces


class FixRank(IntEnum):
    """The order in which an expert would try fixes."""

    REPAIR = 1  # a mistake: a name, domain, unit, namespace, missing reference
    GIVE = 2  # what is missing: a toleration, a label, a guard
    LESS = 3  # ask for less
    ADMINISTRATOR = 4  # change what an administrator owns
    FREE = 5  # free something
    HARDWARE = 6
    ADVICE = 7  # start the driver, wait for the pool
    GIVE_UP = 8  # drop something that the user asked for


class Proposal(Struct, frozen=True):
    """Something to do: changes of objects, or advice where there are none."""

    text: str
    rank: FixRank
    changes: tuple[ObjectChange, ...] = ()


class Finding(Struct, frozen=True):
    """A cause, and what to do about it, the best first."""

    cause: str
    proposals: tuple[Proposal, ...] = ()


class Fix(Struct, frozen=True):
    """A proposal that was tried, or advice."""

    text: str
    rank: FixRank
    changes: tuple[ObjectChange, ...] = ()
    node: str = ""  # that the pod gets with the changes

    @property
    def kind(self) -> str:
        """`change` if objects can be written that make it fit, else `advice`."""
        return "change" if self.changes else "advice"

    def tree(self) -> dict[str, Any]:
        """Return the fix as JSON shows it."""
        tree: dict[str, Any] = {
            "text": self.text,
            "kind": self.kind,
            "rank": self.rank.name.lower(),
        }
        if self.changes:
            tree["node"] = self.node
            tree["changes"] = list(map(changed_tree, self.changes))
        return tree


class Answer(Struct, frozen=True):
    """Why a pod gets no node, in one sentence, and what would help, the best first."""

    cause: str
    fixes: tuple[Fix, ...] = ()


class Case:
    """Everything that findings about one pending pod are made from."""

    def __init__(
        self,
        cluster: Cluster,
        snapshot: Snapshot,
        explanation: Explanation,
        context: Context,
        *,
        refused: Sequence[RefusedObject] = (),
        over_quota: Mapping[str, str] | None = None,
        unread: Unread | None = None,
    ) -> None:
        self.cluster = cluster
        self.snapshot = snapshot  # the objects of the cluster and the manifests
        self.explanation = explanation
        self.context = context
        self.refused = refused
        self.over_quota = over_quota or {}
        self.unread: Unread = unread or {}
        self.rehearsal = Rehearsal(cluster, snapshot, context, explanation.pending.pod)

    @property
    def pod(self) -> Pod:
        """The pending pod."""
        return self.explanation.pending.pod

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self.pod.metadata.namespace

    @property
    def sources(self) -> Sources:
        """Where pods and claims are written."""
        return self.rehearsal.sources

    @cached_property
    def fleet(self) -> PublishedDevices:
        """All published devices."""
        return PublishedDevices(self.snapshot.slices, names=self.context.extensions)


def one_line(text: str) -> str:
    """Return a cause as one line that is short enough."""
    line = " ".join(text.split())
    return line if len(line) <= CAUSE_LENGTH_MAX else f"{line[: CAUSE_LENGTH_MAX - 1]}…"
