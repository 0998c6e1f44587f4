"""Where pods go, why a pod gets no node, and what would help."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

from msgspec.structs import replace

from moorage.insight.answer.answer import answers
from moorage.insight.answer.document import ShownAnswer, ShownFix, shown_explanations
from moorage.insight.answer.finding import Fix as FoundFix
from moorage.insight.answer.groups import AnsweredPods, grouped
from moorage.insight.answer.manifests import fixed_manifests
from moorage.insight.answer.output import answer_lines
from moorage.insight.errors import UnknownObjectError
from moorage.insight.explain.pods import DiagnosisTimeLimit
from moorage.insight.messages import counted, full_name, similar_hint
from moorage.insight.plan.arrival_orders import better_order
from moorage.insight.plan.document import (
    decisive,
    nothing_text,
    plan_tree,
    shown_placement,
    shown_results,
    stand_ins_text,
)
from moorage.insight.plan.placements import Placement
from moorage.insight.plan.planner import Plan as InsightPlan
from moorage.insight.plan.planner import Result
from moorage.insight.plan.refused import refused_results, with_refused
from moorage.insight.rows import Row, cause_rows, fix_row, plan_rows
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.kit.errors import MoorageError
from moorage.library import html
from moorage.library.results import Readable, Record, plain_tree
from moorage.scheduler.scheduling_cycle import Pending
from moorage.sources.given_cluster import GivenCluster

if TYPE_CHECKING:
    from moorage.library.world import World


class _Pod(Readable):
    """A pod of a plan."""

    __slots__ = ("_placement",)

    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self._placement.pod.rpartition("/")[2]

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self._placement.pod.partition("/")[0]

    @property
    def full_name(self) -> str:
        """Namespace and name of the pod: `default/train`."""
        return self._placement.pod

    @property
    def stands_for(self) -> str | None:
        """The claim or template that no pod uses, if this stands for one: `claim/NAME`."""
        return self._placement.stands_for

    def to_dict(self) -> dict[str, Any]:
        """Return the pod as `moor plan -o json` prints it."""
        return plain_tree(self._placement)

    @property
    def _title(self) -> str:
        instead = self._placement.stands_for
        return f"{instead}, which no pod uses," if instead else f"pod {self._placement.pod}"

    def _rows(self) -> Iterator[Row]:
        return plan_rows([self._placement])

    def _repr_html_(self) -> str:
        return html.block(html.paragraph(self))


@final
class PlacedPod(_Pod):
    """A pod that gets a node."""

    __slots__ = ()

    @property
    def node(self) -> str:
        """The node that the pod gets."""
        return self._placement.node or ""

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of its claims, as driver/pool/device."""
        return tuple(device for each in self.requests.values() for device in each)

    @property
    def requests(self) -> dict[str, tuple[str, ...]]:
        """The devices by request; with several claims, requests are named CLAIM/REQUEST."""
        granted = self._placement.requests
        is_one = len({each.claim for each in granted}) <= 1
        return {
            each.request if is_one else f"{each.claim}/{each.request}": tuple(
                f"{one.driver}/{one.pool}/{one.device}" for one in each.devices
            )
            for each in granted
        }

    def __str__(self) -> str:
        return f"{self._title} on {self.node}: {', '.join(self.devices) or '-'}"


@final
class PendingPod(_Pod):
    """A pod that gets no node."""

    __slots__ = ("_pending", "_plan")

    def __init__(self, placement: Placement, pending: Pending, plan: Plan) -> None:
        super().__init__(placement)
        self._pending = pending
        self._plan = plan

    @property
    def message(self) -> str:
        """Kubernetes' message; empty where its scheduler writes none."""
        return self._placement.message

    @property
    def reason(self) -> str:
        """Why the pod gets no node, in one line."""
        return self._placement.reason

    @property
    def is_unknown(self) -> bool:
        """Whether it is unknown if the pod gets a node, because what decides could not be read."""
        return self._placement.unknown

    def explain(self) -> Explanation:
        """Return why the pod gets no node, what would help, and the evidence."""
        (found,) = self._plan._explained([self._pending])
        return found

    def __str__(self) -> str:
        says = "is not known to get a node" if self.is_unknown else "gets no node"
        return f"{self._title} {says}: {self.message or self.reason}"


@final
class Plan(Readable):
    """Where pods go, and which devices their claims get. `World.plan` returns it."""

    def __init__(self, given: GivenCluster, plan: InsightPlan, manifests: Snapshot) -> None:
        self._given = given
        self._plan = with_refused(plan, given.refused_objects)
        # Those of refused objects come first, as in `moor explain`.
        refused = refused_results(self._plan)
        self._results = (*refused, *shown_results(plan, manifests))

    @cached_property
    def pods(self) -> tuple[PlacedPod | PendingPod, ...]:
        """All pods of the plan, in order."""
        return tuple(self._pods(self._results))

    @cached_property
    def stand_ins(self) -> tuple[PlacedPod | PendingPod, ...]:
        """What pods would get that use a claim or template which no pod uses.

        There are no such pods: each is tried alone on what the pods of the plan leave.
        """
        return tuple(self._pods(self._plan.stand_ins))

    def _pods(self, results: Sequence[Result]) -> Iterator[PlacedPod | PendingPod]:
        for each in results:
            placement = shown_placement(each, self._plan)
            if isinstance(each, Pending):
                yield PendingPod(placement, each, self)
            else:
                yield PlacedPod(placement)

    @property
    def placed(self) -> tuple[PlacedPod, ...]:
        """The pods that get a node."""
        return tuple(each for each in self.pods if isinstance(each, PlacedPod))

    @property
    def pending(self) -> tuple[PendingPod, ...]:
        """The pods that get no node."""
        return tuple(each for each in self.pods if isinstance(each, PendingPod))

    @property
    def fits(self) -> bool:
        """Whether every pod gets a node; without pods, whether every stand-in would."""
        found = decisive(self.pods, self.stand_ins)
        return not any(isinstance(each, PendingPod) for each in found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats that limit what the plan means."""
        return tuple(map(str, self._plan.concerns))

    def pod(self, name: str) -> PlacedPod | PendingPod:
        """Return the pod with this NAME or NAMESPACE/NAME, or raise MoorageError.

        A stand-in has the name of what it stands for: claim/NAME or template/NAME.
        """
        for each in self.pods:
            if name in (each.full_name, each.name):
                return each
        for each in self.stand_ins:
            if name == each.stands_for:
                return each
        hint = similar_hint(
            name, [known for each in self.pods for known in (each.name, each.full_name)]
        )
        raise UnknownObjectError(f"there is no pod {name} in the plan{hint}")

    def explain(self) -> tuple[Explanation, ...]:
        """Return an explanation for each cause that keeps pods, or stand-ins, from their nodes."""
        found = (*self.pods, *self.stand_ins)
        return self._explained([each._pending for each in found if isinstance(each, PendingPod)])

    @cached_property
    def better_order(self) -> tuple[str, ...] | None:
        """An order of arrival in which more pods get a node, if one was found."""
        found = self._better
        return None if found is None else found.arrival

    @cached_property
    def _better(self) -> Any:
        if not self.pending:
            return None
        shown = {full_name(each.pod) for each in self._results}
        return better_order(self._plan, self._given.context, shown=shown)

    @property
    def after(self) -> World:
        """The cluster after all placed pods have got their nodes and devices."""
        from moorage.library.world import World

        return World(replace(self._given, cluster=self._plan.after, manifests=Snapshot()))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as `moor plan -o json` prints it."""
        pods, stand_ins = (
            [each._placement for each in found] for found in (self.pods, self.stand_ins)
        )
        return plain_tree(plan_tree(pods, stand_ins, self._plan.before, self._better))

    def _explained(self, pending: Sequence[Pending]) -> tuple[Explanation, ...]:
        given = self._given
        found = answers(
            self._plan,
            pending,
            given.context,
            refused=given.refused_objects,
            dropped=given.dropped_fields,
            effort=DiagnosisTimeLimit(time.monotonic).effort,
        )
        return tuple(
            Explanation(each, self._plan, given) for each in grouped(found, self._plan.before)
        )

    def _rows(self) -> Iterator[Row]:
        return plan_rows(each._placement for each in (*self.pods, *self.stand_ins))

    def _repr_html_(self) -> str:
        parts: list[str] = []
        for title, found in (("Pod", self.pods), ("No pod uses", self.stand_ins)):
            if found:
                parts.append(html.table((title, "Node", "Devices"), map(_row, found)))
        texts = (*self._summary(), *self.warnings)
        return html.block(*parts, *map(html.paragraph, texts))

    def _summary(self) -> Iterator[str]:
        if not self.pods and not self.stand_ins:
            yield nothing_text(self._plan)
        if self.pods:
            yield f"{counted(len(self.placed), 'pod')} of {len(self.pods)} placed"
        if self.stand_ins:
            placements = [each._placement for each in self.stand_ins]
            yield stand_ins_text(placements, is_after_pods=bool(self.pods))

    def __str__(self) -> str:
        return "\n".join((*self._summary(), *map(str, (*self.pods, *self.stand_ins))))


def _row(pod: PlacedPod | PendingPod) -> tuple[str, str, str]:
    name = pod.stands_for or pod.full_name
    if isinstance(pod, PlacedPod):
        return name, pod.node, ", ".join(pod.devices)
    return name, "<unknown>" if pod.is_unknown else "<none>", pod.message or pod.reason


@final
class Explanation(Readable):
    """Why pods get no node: the cause, the fixes, and the evidence."""

    def __init__(self, answered: AnsweredPods, plan: InsightPlan, given: GivenCluster) -> None:
        self._answered = answered
        self._plan = plan
        self._given = given

    @property
    def title(self) -> str:
        """A description of the pods: `pod default/train`, `97 pods of deployment train`."""
        return self._answered.title(self._given.namespace)

    @property
    def pods(self) -> tuple[str, ...]:
        """The pods with this cause, as namespace/name."""
        return tuple(full_name(each.pod) for each in self._answered.pods)

    @property
    def cause(self) -> str:
        """Why the pods get no node, in one sentence."""
        return self._answered.answer.cause

    @property
    def message(self) -> str:
        """Kubernetes' message; empty where its scheduler writes none."""
        return self._shown.message

    @cached_property
    def fixes(self) -> tuple[Fix, ...]:
        """What would help, the best first. Moorage has tried all changes that it offers."""
        pairs = zip(self._shown.fixes, self._answered.answer.fixes, strict=True)
        return tuple(Fix(shown, found, self._plan, self._given) for shown, found in pairs)

    @cached_property
    def _shown(self) -> ShownAnswer:
        given = self._given
        shown = shown_explanations(
            [], [self._answered], self._plan.before, namespace=given.namespace
        )
        return shown.pending[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as `moor explain -o json` prints it, under `pending`."""
        return plain_tree(self._shown)

    def _rows(self) -> Iterator[Row]:
        return cause_rows([self._shown])

    def _repr_html_(self) -> str:
        lines = (f"{each.text} → {each.node}" if each.node else each.text for each in self.fixes)
        return html.block(
            html.paragraph(f"{self.title}: {self.cause}", is_strong=True),
            html.ordered_list(lines),
            html.paragraph(f"Kubernetes: {self.message}") if self.message else "",
        )

    def __str__(self) -> str:
        """Return what `moor explain` prints: the cause, the fixes and the evidence."""
        found = answer_lines(self._answered, namespace=self._given.namespace)
        return "\n".join(f"{line.lead}{line.text}" for line in found)


@final
class Fix(Record):
    """Something that would help: a change of objects that Moorage has tried, or advice."""

    __slots__ = ("_found", "_given", "_plan", "_shown")

    def __init__(
        self, shown: ShownFix, found: FoundFix, plan: InsightPlan, given: GivenCluster
    ) -> None:
        self._shown, self._found = shown, found
        self._plan, self._given = plan, given

    @property
    def text(self) -> str:
        """What to do."""
        return self._shown.text

    @property
    def is_change(self) -> bool:
        """Whether the fix is a change of objects; otherwise it is advice."""
        return bool(self._found.changes)

    @property
    def node(self) -> str:
        """The node that the first pod gets with the change, or once it has waited."""
        return self._shown.node

    @property
    def gives_up(self) -> str:
        """What the pods have less of then, and which pods; empty if nothing."""
        return self._shown.gives_up

    def manifests(self) -> tuple[dict[str, Any], ...]:
        """Return the manifests with the change, and the objects of the cluster that it changes.

        `moorage.load` takes them. Raises MoorageError for advice.
        """
        if not self._found.changes:
            raise MoorageError(f"advice, which no change of objects can do: {self.text}")
        given = self._given
        fixed = fixed_manifests(self._found, given.documents, self._plan.before, given.context)
        return tuple(each.tree for each in fixed)

    def to_dict(self) -> dict[str, Any]:
        """Return the fix as `moor explain -o json` prints it."""
        return plain_tree(self._shown)

    def _rows(self) -> Iterator[Row]:
        yield fix_row(self._shown)

    def _repr_html_(self) -> str:
        return html.block(html.paragraph(self))

    def __str__(self) -> str:
        kind = "" if self.is_change else " (advice)"
        gets = f" → gets node {self.node}" if self.node else ""
        return f"{self.text}{gets}{kind}"
