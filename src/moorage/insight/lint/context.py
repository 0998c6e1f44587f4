"""What lint knows besides the object at hand: devices, classes, results of expressions, objects.

The scheduler evaluates the selectors of a device's class first, then those of the request, and
stops at the first that is false. So each expression has its candidates, the devices that get as far
as this expression; its result matters only for them.

    # stage: an expression, and the devices that get as far
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from moorage.allocator.pools import PoolId
from moorage.api.core import Namespace, Node
from moorage.api.core.placement import NodeSelector
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.node_affinity import read_node_selector
from moorage.api.resource.v1 import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from moorage.api.scheduling import PodGroup
from moorage.api.timestamp import NO_TIME
from moorage.cel.device import DeviceCompiler, Scope
from moorage.claims.extended_resources import DeviceClassIndex
from moorage.claims.pod_claims import controller_of
from moorage.insight.devices.node_selection import NodeIndex, NodeSelection
from moorage.insight.expressions.evaluation import (
    DeviceResult,
    ExpressionEvaluator,
    InvalidExpression,
    MatchOutcome,
    evaluator_of,
)
from moorage.insight.expressions.published_devices import PublishedDevice, PublishedDevices
from moorage.insight.lint.pools import LintPool, Sightings, pools_of
from moorage.insight.lint.subjects import (
    DEFAULT_NAMESPACE,
    DeviceSelection,
    LintObject,
    LocatedExpression,
    PodPart,
    pod_part_of,
    selections_of,
)
from moorage.insight.snapshot.unread import NOTHING_UNREAD, Unread
from moorage.validation.strategy import Context

Indices = frozenset[int]  # of devices


class ExpressionStage(NamedTuple):
    """An expression, and the devices that get as far."""

    selection: DeviceSelection
    expression: LocatedExpression
    evaluator: ExpressionEvaluator | InvalidExpression
    results: tuple[DeviceResult, ...]  # for all devices
    candidates: Indices
    is_class_known: bool  # else the candidates are too many

    def looked_at(self) -> Iterator[tuple[DeviceResult, list[PublishedDevice]]]:
        """Yield the results that matter, each with its candidates."""
        for result in self.results:
            devices = [device for device in result.devices if device.index in self.candidates]
            if devices and devices[0].variables is not None:
                yield result, devices

    @property
    def passing(self) -> Indices:
        """The candidates that match."""
        return self.candidates & matching(self.results)


class LintContext:
    """All devices, classes and other objects, and the results of expressions."""

    def __init__(
        self,
        fleet: PublishedDevices,
        classes: Iterable[DeviceClass],
        compiler: DeviceCompiler,
        objects: ObjectIndex | None = None,
        unread: Unread = NOTHING_UNREAD,
    ) -> None:
        self.unread = unread
        self.devices = fleet
        self.classes = {class_.metadata.name: class_ for class_ in classes}
        self.compiler = compiler
        self.objects = objects or ObjectIndex()
        self._inquiries: dict[tuple[str, str], ExpressionEvaluator | InvalidExpression] = {}
        self._answers: dict[tuple[str, str], tuple[DeviceResult, ...]] = {}
        self._class_members: dict[str, Indices | None] = {}
        # By the id of a rule and what claims ask for; at most one for each object and rule.
        self.shared_findings: dict[tuple[str, tuple[str, bytes]], tuple[Any, ...]] = {}

    @cached_property
    def class_index(self) -> DeviceClassIndex:
        """The classes by the extended resources that they provide."""
        index = DeviceClassIndex()
        for class_ in self.classes.values():
            index.put_class(class_)
        return index

    @cached_property
    def unreadable(self) -> dict[str, list[PublishedDevice]]:
        """The devices that no expression can read, by slice."""
        found: dict[str, list[PublishedDevice]] = {}
        for device in self.devices.devices:
            if device.problem is not None:
                found.setdefault(device.slice_name, []).append(device)
        return found

    @cached_property
    def selected_drivers(self) -> frozenset[str] | None:
        """The drivers of devices in some class, None if a class cannot be evaluated."""
        members = [self.members(name) for name in self.classes]
        if any(each is None for each in members):
            return None
        selected = frozenset[int]().union(*(each for each in members if each is not None))
        return frozenset(self.devices.devices[index].driver for index in selected)

    def stages(self, subject: LintObject) -> tuple[ExpressionStage, ...]:
        """Return the expressions of an object with their candidates."""
        return tuple(
            stage for selection in selections_of(subject) for stage in self._stages_of(selection)
        )

    def candidates(self, selection: DeviceSelection) -> tuple[Indices, bool]:
        """Return the candidates of a selection, and whether its class exists."""
        admitted = frozenset(d.index for d in self.devices.devices if selection.admits(d))
        if not selection.class_name:
            return admitted, True
        members = self.members(selection.class_name)
        return (admitted, False) if members is None else (admitted & members, True)

    def selected(self, selection: DeviceSelection) -> Indices:
        """Return the selected devices."""
        indices, _ = self.candidates(selection)
        for expression in selection.selectors:
            indices &= matching(self.results(expression))
        return indices

    def members(self, class_name: str) -> Indices | None:
        """Return the devices of a class, None if it is unknown or does not compile."""
        if class_name not in self._class_members:
            self._class_members[class_name] = self._members(class_name)
        return self._class_members[class_name]

    def results(self, expression: LocatedExpression) -> tuple[DeviceResult, ...]:
        """Return the results of an expression; none if it does not compile."""
        key = (expression.text, expression.purpose)
        if key not in self._answers:
            evaluator = self.evaluator(expression)
            given = (
                evaluator.results(self.devices)
                if isinstance(evaluator, ExpressionEvaluator)
                else ()
            )
            self._answers[key] = tuple(given)
        return self._answers[key]

    def evaluator(self, expression: LocatedExpression) -> ExpressionEvaluator | InvalidExpression:
        """Return the evaluator of a new expression, or why it does not compile."""
        key = (expression.text, expression.purpose)
        if key not in self._inquiries:
            is_derived = expression.purpose == "derived"
            evaluator = evaluator_of(expression.text, self.compiler, derived=is_derived)
            if isinstance(evaluator, ExpressionEvaluator) and evaluator.caveat:
                evaluator = InvalidExpression(evaluator.caveat)
            self._inquiries[key] = evaluator
        return self._inquiries[key]

    def compiles_when_stored(self, expression: LocatedExpression) -> bool:
        """Whether an expression would compile with every feature on."""
        kind = expression.purpose
        return self.compiler.compile(expression.text, kind=kind, scope=Scope.STORED).error is None

    def _members(self, class_name: str) -> Indices | None:
        class_ = self.classes.get(class_name)
        if class_ is None:
            return None
        members = frozenset(range(len(self.devices)))
        for selector in class_.spec.selectors:
            expression = LocatedExpression((), selector.cel.expression if selector.cel else "")
            if isinstance(self.evaluator(expression), InvalidExpression):
                return None
            members &= matching(self.results(expression))
        return members

    def _stages_of(self, selection: DeviceSelection) -> Iterator[ExpressionStage]:
        candidates, is_class_known = self.candidates(selection)
        for expression in (*selection.selectors, *(derived for _, derived in selection.derived)):
            stage = ExpressionStage(
                selection=selection,
                expression=expression,
                evaluator=self.evaluator(expression),
                results=self.results(expression),
                candidates=candidates,
                is_class_known=is_class_known,
            )
            yield stage
            if expression.purpose == "selector" and isinstance(
                stage.evaluator, ExpressionEvaluator
            ):
                candidates = stage.passing


def matching(results: Iterable[DeviceResult]) -> Indices:
    """Return the devices that match."""
    return frozenset(
        device.index
        for result in results
        if result.outcome is MatchOutcome.MATCH
        for device in result.devices
    )


# --- objects by name --------------------------------------------------------------------


class NamespacedName(NamedTuple):
    """The namespace and name of an object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ObjectIdentity(NamedTuple):
    """The kind and full name of an object."""

    kind: str
    full_name: str


class ObjectIndex:
    """Every given object, indexed by name."""

    def __init__(self, objects: Iterable[LintObject] = (), context: Context | None = None) -> None:
        self.context = context or Context(gates=Gates.parse(""), now=NO_TIME)
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.claims: dict[NamespacedName, ResourceClaim] = {}
        self.templates: dict[NamespacedName, ResourceClaimTemplate] = {}
        self.groups: dict[NamespacedName, PodGroup] = {}
        self.latest: dict[ObjectIdentity, LintObject] = {}  # of objects with the same name
        self._pod_parts: list[PodPart] = []
        self._slices: list[ResourceSlice] = []
        for each in objects:
            self._add(each)

    def _add(self, found: LintObject) -> None:
        metadata = found.value.metadata
        if metadata.name:
            self.latest[_identity_of(found)] = found
        match found.value:
            case Node():
                self.nodes[metadata.name] = found.value
            case Namespace():
                self.namespaces[metadata.name] = found.value
            case ResourceClaim():
                self.claims[key_of(metadata)] = found.value
            case ResourceClaimTemplate():
                self.templates[key_of(metadata)] = found.value
            case PodGroup():
                self.groups[key_of(metadata)] = found.value
            case ResourceSlice():
                self._slices.append(found.stored or found.value)
            case _:
                part = pod_part_of(found.value)
                if part is not None:
                    self._pod_parts.append(part)

    def later(self, found: LintObject) -> LintObject | None:
        """Return the later object of the same name that replaces this one, if there is one."""
        latest = self.latest.get(_identity_of(found))
        return None if latest is None or latest.value is found.value else latest

    @cached_property
    def pools(self) -> dict[PoolId, LintPool]:
        """The pools of all slices."""
        return pools_of(self._slices)

    @cached_property
    def sightings(self) -> Sightings:
        """The attributes of all devices in pools."""
        return Sightings(slice_ for pool in self.pools.values() for slice_ in pool.slices)

    def selects_some_node(self, selector: NodeSelector) -> bool:
        """Whether some node matches; other rules report a selector that cannot be read."""
        if read_node_selector(selector).fault is not None:
            return True
        return self._node_index.has(NodeSelection(selector=selector))

    @cached_property
    def _node_index(self) -> NodeIndex:
        return NodeIndex(self.nodes.values())

    @cached_property
    def node_resources(self) -> Counter[str]:
        """How many nodes have some of each resource."""
        return Counter(
            name
            for node in self.nodes.values()
            for name, quantity in node.status.allocatable.items()
            if not quantity.is_zero
        )

    def is_made_by_given(self, metadata: ObjectMeta) -> bool:
        """Whether an object belongs to a controller in the input, which is linted instead."""
        owner = controller_of(metadata)
        if owner is None:
            return False
        namespace = metadata.namespace or DEFAULT_NAMESPACE
        return ObjectIdentity(owner.kind, f"{namespace}/{owner.name}") in self.latest

    @cached_property
    def pod_parts(self) -> tuple[PodPart, ...]:
        """All pods and pod templates that have not ended and have no controller in the input."""
        return tuple(
            part
            for part in self._pod_parts
            if not part.is_over and not self.is_made_by_given(part.metadata)
        )

    def pods_of(self, part: PodPart) -> int:
        """Return how many pods there will be."""
        return len(self.nodes) or 1 if part.pods is None else part.pods

    @cached_property
    def users(self) -> dict[NamespacedName, list[PodPart]]:
        """The pods that use each claim by name."""
        users: dict[NamespacedName, list[PodPart]] = {}
        for part in self.pod_parts:
            for name in {entry.resource_claim_name for entry in part.spec.resource_claims}:
                if name is not None:
                    users.setdefault(NamespacedName(part.namespace, name), []).append(part)
        return users

    @cached_property
    def members(self) -> Counter[NamespacedName]:
        """How many pods each group has."""
        members: Counter[NamespacedName] = Counter()
        for part in self.pod_parts:
            if part.group_name is not None:
                members[NamespacedName(part.namespace, part.group_name)] += self.pods_of(part)
        return members

    @cached_property
    def has_template_users(self) -> bool:
        """Whether some pod uses a claim from a template."""
        return any(
            entry.resource_claim_template_name
            for part in self.pod_parts
            for entry in part.spec.resource_claims
        )

    @cached_property
    def has_admin_access(self) -> bool:
        """Whether some claim asks for admin access."""
        specs = (claim.spec for claim in self.claims.values())
        template_specs = (template.spec.spec for template in self.templates.values())
        return any(
            request.exactly is not None and request.exactly.admin_access
            for spec in (*specs, *template_specs)
            for request in spec.devices.requests or ()
        )


def key_of(metadata: ObjectMeta) -> NamespacedName:
    """Return the namespace and name of an object."""
    return NamespacedName(metadata.namespace or DEFAULT_NAMESPACE, metadata.name)


def _identity_of(found: LintObject) -> ObjectIdentity:
    return ObjectIdentity(found.kind.name, found.full_name)
