"""Findings: the cause of a pending pod in one sentence, and proposals for what to do about it.

# proposal: something to do, as text, with the changes of objects that it means, if any
# fix: a proposal that was tried, with the node that the pod would get; or advice
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Final

from msgspec import Struct

from moorage.api.core.pod import Pod
from moorage.cel.device import DeviceCompiler
from moorage.insight.answer.cause_kinds import CauseKind
from moorage.insight.answer.changes.departures import Departure
from moorage.insight.answer.changes.edits import ObjectChange
from moorage.insight.answer.changes.rehearsal import Rehearsal, Stage
from moorage.insight.answer.changes.sources import Sources
from moorage.insight.explain.pods import Explanation
from moorage.insight.explain.report import distance
from moorage.insight.explain.trials import EFFORT, Effort
from moorage.insight.expressions.evaluation import (
    InvalidExpression,
    MatchOutcome,
    compiler_for,
    evaluator_of,
)
from moorage.insight.expressions.published_devices import PublishedDevice, PublishedDevices
from moorage.insight.messages import CAUSE_LENGTH_MAX
from moorage.insight.plan.planner import Plan
from moorage.insight.snapshot.snapshot import Snapshot, is_new
from moorage.insight.snapshot.written_objects import DroppedFields, RefusedObject
from moorage.scheduler.cluster import Cluster
from moorage.validation.strategy import Context

VERDICTS_TRIED_MAX: Final = 6
NODES_TRIED_MAX: Final = 16  # of each verdict, before other nodes
CLAUSE_LENGTH_MIN: Final = 40
EXPRESSION_LENGTH_MIN: Final = 24
CLAUSES: Final = ("; ", ", ", " (", ": ")  # the strongest ends first
_QUOTED: Final = re.compile(r"`([^`]*)`")


class FixRank(IntEnum):
    """The order in which an expert would try fixes."""

    REPAIR = 1  # a mistake: a name, domain, unit, namespace, missing reference
    GIVE = 2  # what is missing: a toleration, a label, a guard
    ORDER = 3  # come first; nobody has less then
    LESS = 4  # ask for less
    ADMINISTRATOR = 5  # change what an administrator owns
    FREE = 6  # free something
    HARDWARE = 7
    ADVICE = 8  # start the driver, wait for the pool
    GIVE_UP = 9  # drop something that the user asked for


class Proposal(Struct, frozen=True):
    """Something to do: changes of objects, or advice where there are none."""

    text: str
    rank: FixRank
    changes: tuple[ObjectChange, ...] = ()
    holders: Departure = ()  # some of whom have to go; the rehearsal finds out who
    left: str = ""  # the node that they leave; "" if they free their devices


class Finding(Struct, frozen=True):
    """A cause, and what to do about it, the best first."""

    cause: str
    proposals: tuple[Proposal, ...] = ()
    kind: CauseKind = CauseKind.UNKNOWN


class Fix(Struct, frozen=True):
    """A proposal that was tried, or advice."""

    text: str
    rank: FixRank
    changes: tuple[ObjectChange, ...] = ()
    node: str = ""  # that the pod gets with the changes, or once it has waited
    waits_for: Departure = ()  # who has to go before
    gives_up: str = ""  # what the pods have less of then, and which pods; "" if nothing

    @property
    def marked(self) -> str:
        """What to do, with whose change it is, or what is given up by it."""
        marks = [self.gives_up] if self.gives_up else []
        if self.rank is FixRank.ADMINISTRATOR and "administrator" not in self.text:
            marks.append("an administrator's change")
        return f"{self.text} ({', '.join(marks)})" if marks else self.text

    @property
    def kind(self) -> str:
        """`change` if objects can be written that make it fit, else `advice`."""
        return "change" if self.changes else "advice"


class Answer(Struct, frozen=True):
    """Why a pod gets no node, in one sentence, and what would help, the best first."""

    cause: str
    fixes: tuple[Fix, ...] = ()


class Surroundings:
    """What the cases of all pending pods of a plan share; each part is made when it is needed."""

    def __init__(
        self,
        plan: Plan,
        context: Context,
        refused: Sequence[RefusedObject] = (),
        dropped: Sequence[DroppedFields] = (),
        effort: Callable[[], Effort] = lambda: EFFORT,
    ) -> None:
        self.plan, self.context, self.effort = plan, context, effort
        self.refused, self.dropped = refused, dropped
        self.stage = Stage(plan, context)
        self.devices_of_class: dict[str, list[PublishedDevice]] = {}  # as far as asked for
        self._passing: dict[str, frozenset[int]] = {}

    def changed(self, plan: Plan) -> Surroundings:
        """Return the same for a plan of changed objects; slices are never changed."""
        other = Surroundings(plan, self.context, effort=self.effort)
        other.__dict__ |= {"fleet": self.fleet, "compiler": self.compiler}
        other._passing = self._passing
        return other

    @cached_property
    def fleet(self) -> PublishedDevices:
        """All published devices."""
        return PublishedDevices(self.plan.before.slices, names=self.context.extensions)

    @cached_property
    def compiler(self) -> DeviceCompiler:
        """The compiler of new expressions."""
        return compiler_for(self.context.gates, extensions=self.context.extensions)

    def passing(self, expression: str) -> frozenset[int]:
        """Return the indices of the devices for which an expression is true."""
        found = self._passing.get(expression)
        if found is None:
            found = self._passing[expression] = self.matching(expression, self.fleet)
        return found

    def matching(self, expression: str, devices: PublishedDevices) -> frozenset[int]:
        """Return the indices of given devices for which an expression is true."""
        evaluator = evaluator_of(expression, self.compiler)
        if isinstance(evaluator, InvalidExpression):
            return frozenset()
        return frozenset(
            device.index
            for result in evaluator.results(devices)
            if result.outcome is MatchOutcome.MATCH
            for device in result.devices
        )


class Case:
    """Everything that findings about one pending pod are made from."""

    knows_waiting_pods = True  # all pods are in the snapshot, also those without a node

    def __init__(self, around: Surroundings, explanation: Explanation) -> None:
        self.around, self.explanation = around, explanation
        self.cluster: Cluster = around.plan.cluster
        self.snapshot: Snapshot = around.plan.before  # the objects of the cluster and the manifests
        self.context = around.context
        self.refused, self.dropped = around.refused, around.dropped
        self.devices_of_class = around.devices_of_class
        self.over_quota, self.unread = around.plan.over_quota, self.snapshot.unread
        self.effort = around.effort()  # for all that is tried after the explanation
        self.nearest_nodes = _nearest_nodes(explanation)
        self.rehearsal = Rehearsal(around.stage, self.pod, self.nearest_nodes)

    @cached_property
    def knows_running_pods(self) -> bool:
        """Whether the pods with a node are given, so that one that is not there is gone."""
        return any(pod.spec.node_name for pod in self.snapshot.pods)

    @property
    def pod(self) -> Pod:
        """The pending pod."""
        return self.explanation.pending.pod

    @property
    def is_late(self) -> bool:
        """Whether there is no time to try more."""
        interrupt = self.effort.interrupt
        return interrupt is not None and interrupt() is not None

    @property
    def is_new(self) -> bool:
        """Whether no server has seen the pod, so that no scheduler says anything about it."""
        return is_new(self.pod)

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self.pod.metadata.namespace

    @property
    def sources(self) -> Sources:
        """Where pods and claims are written."""
        return self.around.stage.sources

    @property
    def fleet(self) -> PublishedDevices:
        """All published devices."""
        return self.around.fleet


def _nearest_nodes(explanation: Explanation) -> list[str]:
    """Return some nodes of each of the nearest verdicts."""
    verdicts = sorted(explanation.verdicts, key=distance)[:VERDICTS_TRIED_MAX]
    return [name for verdict in verdicts for name in verdict.nodes[:NODES_TRIED_MAX]]


def one_line(text: str) -> str:
    """Return a cause as one line that is short enough.

    Of what is too long, quoted expressions are shortened first, then clauses are left out from the
    end: what is wrong comes first.
    """
    line = " ".join(text.split())
    line = _QUOTED.sub(lambda quoted: _shortened(quoted, len(line)), line)
    while len(line) > CAUSE_LENGTH_MAX:
        ends = (line.rfind(each, 0, CAUSE_LENGTH_MAX + 1) for each in CLAUSES)
        end = next((each for each in ends if each >= CLAUSE_LENGTH_MIN), None)
        if end is None:
            return f"{line[: CAUSE_LENGTH_MAX - 1]}…"
        line = line[:end]
    return line


def _shortened(quoted: re.Match[str], length: int) -> str:
    text = quoted[1]
    kept = max(len(text) - (length - CAUSE_LENGTH_MAX) - 1, EXPRESSION_LENGTH_MIN)
    if length <= CAUSE_LENGTH_MAX or kept >= len(text):
        return quoted[0]
    return f"`{text[: kept - 1]}…`"
