"""What lint looks at: objects with their text, the devices that they select, the pods in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from moorage.api.batch import Job
from moorage.api.catalogue import KINDS, to_hub
from moorage.api.core import Pod
from moorage.api.core.pod import Container, PodSpec, PodStatus
from moorage.api.documents import Document
from moorage.api.documents.document import Position
from moorage.api.field_path import Place, path_of
from moorage.api.kinds import Kind
from moorage.api.meta import ObjectMeta
from moorage.api.object_reader import ReadObject, Remark, read_document
from moorage.api.resource.v1 import (
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from moorage.insight.expressions.published_devices import PublishedDevice
from moorage.validation.manifests import written_place
from moorage.validation.registry import strategy_for
from moorage.validation.strategy import Context
from moorage.validation.versioned_paths import versioned_path

SELECTING_KINDS: Final = (
    "DeviceClass",
    "DeviceTaintRule",
    "ResourceClaim",
    "ResourceClaimTemplate",
)
Purpose = Literal["selector", "derived"]
POD_KINDS: Final = frozenset(("Pod", "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"))
DEFAULT_NAMESPACE: Final = "default"
_TEMPLATE: Final[Place] = ("spec", "template", "spec")
# By kind: no kind used here is in two groups.
_GROUPS = {kind.name: kind.group for kind in KINDS}


class LintObject(NamedTuple):
    """An object and the document it was read from."""

    document: Document
    kind: Kind
    value: Any
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Remark, ...] = ()
    stored: Any = None  # of a slice: without what disabled features lose

    @property
    def full_name(self) -> str:
        """The name, with its namespace if the kind has one."""
        metadata = self.value.metadata
        name: str = metadata.name or metadata.generate_name
        if not self.kind.namespaced:
            return name
        return f"{metadata.namespace or 'default'}/{name}"

    def locate(self, place: Place) -> Position:
        """Return the position in the text of a path in the stored version."""
        if place:
            place = versioned_path(path_of(place), self.kind).segments
        return self.document.locate(written_place(self.document.tree, place))


def resource_kind(document: Document) -> str:
    """Return the kind of an object of a known API group, "" for everything else.

    Decoding the object shows whether its version is known.
    """
    reading: ReadObject | None = document.reading
    if reading is not None:
        known = reading.kind
        return known.name if _GROUPS.get(known.name) == known.group else ""
    tree = document.tree
    if not isinstance(tree, dict):
        return ""
    version, kind = tree.get("apiVersion"), tree.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return ""
    return kind if _GROUPS.get(kind) == version.rpartition("/")[0] else ""


def read_object(document: Document, context: Context) -> LintObject:
    """Return the object of a document, or raise DecodeError."""
    reading = read_document(document, gates=context.gates, extensions=context.extensions)
    value = to_hub(reading.value, reading.kind)
    return LintObject(document, reading.kind, value, reading.remarks, reading.problems)


def read_slice(document: Document, context: Context) -> LintObject:
    """Return the slice of a document, with its stored form, or raise DecodeError."""
    found = read_object(document, context)
    return found._replace(stored=strategy_for(found.kind).prepare_for_create(found.value, context))


# --- objects that select devices --------------------------------------------------------


class LocatedExpression(NamedTuple):
    """An expression and its path in the object."""

    place: Place
    text: str
    purpose: Purpose = "selector"


class DeviceSelection(NamedTuple):
    """A request, alternative, class or taint rule that selects devices."""

    place: Place
    reference: str = ""  # the name of the request, `request/alternative` for one of several
    class_name: str | None = None
    selectors: tuple[LocatedExpression, ...] = ()
    derived: tuple[tuple[str, LocatedExpression], ...] = ()  # name: expression
    admits: Callable[[PublishedDevice], bool] = lambda _: True


def selections_of(subject: LintObject) -> tuple[DeviceSelection, ...]:
    """Return all device selections of an object."""
    match subject.value:
        case DeviceClass(spec=spec):
            return (DeviceSelection(("spec",), selectors=_selectors(spec.selectors, ("spec",))),)
        case DeviceTaintRule():
            return _rule_selections(subject.value)
        case _:
            place, claim = claim_of(subject)
            return tuple(_claim_selections(claim, place)) if claim is not None else ()


def claim_of(subject: LintObject) -> tuple[Place, DeviceClaim | None]:
    """Return the device claim of a claim or template, and its path."""
    match subject.value:
        case ResourceClaim(spec=spec):
            return ("spec", "devices"), spec.devices
        case ResourceClaimTemplate(spec=template):
            return ("spec", "spec", "devices"), template.spec.devices
        case _:
            return (), None


def constraints_of(subject: LintObject) -> Iterator[tuple[Place, DeviceConstraint]]:
    """Yield the constraints of a claim or template with their paths."""
    place, claim = claim_of(subject)
    for i, constraint in enumerate(claim.constraints if claim is not None else ()):
        yield (*place, "constraints", i), constraint


def _rule_selections(rule: DeviceTaintRule) -> tuple[DeviceSelection, ...]:
    selector = rule.spec.device_selector
    if selector is None:
        return ()
    place = ("spec", "deviceSelector")

    def admits(device: PublishedDevice) -> bool:
        return (
            selector.driver in (None, device.driver)
            and selector.pool in (None, device.pool)
            and selector.device in (None, device.name)
        )

    return (
        DeviceSelection(
            place,
            class_name=selector.device_class_name,
            selectors=_selectors(selector.selectors, place),
            admits=admits,
        ),
    )


def _claim_selections(claim: DeviceClaim, place: Place) -> Iterator[DeviceSelection]:
    for i, request in enumerate(claim.requests or ()):
        at = (*place, "requests", i)
        if request.exactly is not None:
            yield _selection(request.exactly, request.name, (*at, "exactly"))
        for j, alternative in enumerate(request.first_available):
            reference = f"{request.name}/{alternative.name}"
            yield _selection(alternative, reference, (*at, "firstAvailable", j))


def _selection(
    request: ExactDeviceRequest | DeviceSubRequest, reference: str, place: Place
) -> DeviceSelection:
    derived = tuple(
        (
            attribute.name,
            LocatedExpression(
                (*place, "derivedAttributes", i, "expression"), attribute.expression, "derived"
            ),
        )
        for i, attribute in enumerate(request.derived_attributes)
    )
    return DeviceSelection(
        place,
        reference=reference,
        class_name=request.device_class_name,
        selectors=_selectors(request.selectors, place),
        derived=derived,
    )


def _selectors(
    selectors: tuple[DeviceSelector, ...], place: Place
) -> tuple[LocatedExpression, ...]:
    return tuple(
        LocatedExpression((*place, "selectors", i, "cel", "expression"), selector.cel.expression)
        for i, selector in enumerate(selectors)
        if selector.cel is not None
    )


# --- pods and pod templates -------------------------------------------------------------


class PodPart(NamedTuple):
    """The pod spec in an object: its path, its content, and how many pods there are."""

    place: Place
    metadata: ObjectMeta  # of the whole object
    spec: PodSpec
    status: PodStatus | None  # None: no pod yet, but a template of pods
    pods: int | None  # None: one for every node

    @property
    def namespace(self) -> str:
        """The namespace of the pods."""
        return self.metadata.namespace or DEFAULT_NAMESPACE

    @property
    def is_over(self) -> bool:
        """Whether the pod has terminated."""
        return self.status is not None and self.status.phase in ("Succeeded", "Failed")

    @property
    def group_name(self) -> str | None:
        """The pod group that the pods are scheduled with."""
        group = self.spec.scheduling_group
        return None if group is None else group.pod_group_name

    def containers(self) -> Iterator[tuple[Place, Container]]:
        """Yield all containers with their paths."""
        for field, containers in (
            ("initContainers", self.spec.init_containers),
            ("containers", self.spec.containers),
        ):
            for i, container in enumerate(containers):
                yield (*self.place, field, i), container


def pod_part_of(value: Any) -> PodPart | None:
    """Return the pod spec in an object, None if there is none."""
    match value:
        case Pod(metadata=metadata, spec=spec, status=status):
            return PodPart(("spec",), metadata, spec, status, 1)
        case Deployment() | ReplicaSet() | StatefulSet():
            count = _or_one(value.spec.replicas)
            return PodPart(_TEMPLATE, value.metadata, value.spec.template.spec, None, count)
        case DaemonSet():
            return PodPart(_TEMPLATE, value.metadata, value.spec.template.spec, None, None)
        case Job(spec=job):
            count = _or_one(job.parallelism)
            if job.completions is not None:
                count = min(count, job.completions)
            return PodPart(_TEMPLATE, value.metadata, job.template.spec, None, count)
        case _:
            return None


def _or_one(number: int | None) -> int:
    return 1 if number is None else number
