"""From what a user wrote to what is stored: the steps of the API server, without the server.

    written object ─ default ─ to the hub version ─ prepare ─ check ─ stored object

`admit_create`, `admit_update` and `admit_status` run them for one object and return an
Admission: the object as it would be stored, or everything that is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from mooring.api import events
from mooring.api.catalogue import to_hub
from mooring.api.fieldpath import Path, path_of
from mooring.api.gates import Gate
from mooring.api.kinds import Kind
from mooring.api.meta import ObjectMeta
from mooring.api.resource import v1beta1
from mooring.validation.apps import (
    DaemonSetStrategy,
    DeploymentStrategy,
    ReplicaSetStrategy,
    StatefulSetStrategy,
)
from mooring.validation.cluster_kinds import (
    EventStrategy,
    LeaseStrategy,
    NewEventStrategy,
    NodeStrategy,
    PriorityClassStrategy,
    RuntimeClassStrategy,
)
from mooring.validation.device_class import DeviceClassStrategy, DeviceTaintRuleStrategy
from mooring.validation.equality import ObjectUpdate, stored_form
from mooring.validation.errors import ErrorList, ErrorType, FieldError, invalid, quoted
from mooring.validation.field_rules import twins_of
from mooring.validation.job import JobStrategy
from mooring.validation.metadata import METADATA, check_path_segments
from mooring.validation.namespace import (
    ConfigMapStrategy,
    NamespaceStrategy,
    ResourceQuotaStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from mooring.validation.pod.strategy import PodStrategy
from mooring.validation.pod_group import CompositePodGroupStrategy, PodGroupStrategy
from mooring.validation.rbac import (
    ClusterRoleBindingStrategy,
    ClusterRoleStrategy,
    RoleBindingStrategy,
    RoleStrategy,
)
from mooring.validation.resource_claim import ResourceClaimStrategy, ResourceClaimTemplateStrategy
from mooring.validation.resource_pool_status_request import ResourcePoolStatusRequestStrategy
from mooring.validation.resource_slice import ResourceSliceStrategy
from mooring.validation.scheduler_configuration import SchedulerConfigurationStrategy
from mooring.validation.strategy import Context, ObjectStrategy, Strategy
from mooring.validation.workload import WorkloadStrategy

STRATEGIES: dict[str, Strategy[Any]] = {
    "ClusterRole": ClusterRoleStrategy(),
    "ClusterRoleBinding": ClusterRoleBindingStrategy(),
    "CompositePodGroup": CompositePodGroupStrategy(),
    "ConfigMap": ConfigMapStrategy(),
    "DaemonSet": DaemonSetStrategy(),
    "Deployment": DeploymentStrategy(),
    "DeviceClass": DeviceClassStrategy(),
    "DeviceTaintRule": DeviceTaintRuleStrategy(),
    "Event": EventStrategy(),
    "Job": JobStrategy(),
    "KubeSchedulerConfiguration": SchedulerConfigurationStrategy(),
    "Lease": LeaseStrategy(),
    "Namespace": NamespaceStrategy(),
    "Node": NodeStrategy(),
    "Pod": PodStrategy(),
    "PodGroup": PodGroupStrategy(),
    "PriorityClass": PriorityClassStrategy(),
    "ReplicaSet": ReplicaSetStrategy(),
    "ResourceClaim": ResourceClaimStrategy(),
    "ResourceClaimTemplate": ResourceClaimTemplateStrategy(),
    "ResourcePoolStatusRequest": ResourcePoolStatusRequestStrategy(),
    "ResourceQuota": ResourceQuotaStrategy(),
    "ResourceSlice": ResourceSliceStrategy(),
    "Role": RoleStrategy(),
    "RoleBinding": RoleBindingStrategy(),
    "RuntimeClass": RuntimeClassStrategy(),
    "Secret": SecretStrategy(),
    "ServiceAccount": ServiceAccountStrategy(),
    "StatefulSet": StatefulSetStrategy(),
    "Workload": WorkloadStrategy(),
}
_NEW_EVENTS = NewEventStrategy()  # stored as those of the core group, but checked more strictly


class MetadataOnly(ObjectStrategy[Any]):
    """Admission of kinds of which only the metadata matters here."""

    def __init__(self, kind: Kind) -> None:
        self.namespaced = kind.namespaced


CONFLICT = (
    "Conflict: the object has been modified; please apply your changes to the latest version "
    "and try again"
)
WRONG_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)


class Admission(NamedTuple):
    """What became of a request: stored if there are no errors and it was not refused."""

    stored: Any = None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str | None = None  # a request that contradicts itself or what is stored


def read_hub(value: Any, kind: Kind, context: Context) -> Any:
    """Return a written object, defaulted and in its hub version."""
    hub = to_hub(value, kind)
    metadata: ObjectMeta | None = getattr(hub, "metadata", None)
    if metadata and metadata.creation_timestamp and metadata.creation_timestamp.is_zero:
        hub = _with_metadata(hub, creation_timestamp=None)
    return _defaulted(hub, strategy_of(kind), kind.api_version, context)


def _defaulted(value: Any, strategy: Strategy[Any], api_version: str, context: Context) -> Any:
    return strategy.default(value, api_version, context)


def strategy_of(kind: Kind) -> Strategy[Any]:
    """Return how objects of the kind are admitted; of a few we check the metadata only."""
    if kind.api_version == events.API_VERSION:
        return _NEW_EVENTS
    return STRATEGIES.get(kind.name) or MetadataOnly(kind)


def admit_create(
    value: Any, kind: Kind, context: Context, *, namespace: str = "default"
) -> Admission:
    """Admit a new object."""
    strategy = strategy_of(kind)
    new = read_hub(value, kind, context)
    if not hasattr(new, "metadata"):  # a configuration file, not an object of an API server
        return _conclude(new, strategy.validate(new, context), kind, context)
    prefix = "" if new.metadata.name else new.metadata.generate_name
    new = _generate_name(_in_namespace(_without_system_fields(new), kind, namespace))
    if new.metadata.namespace != _expected_namespace(kind, namespace):
        return Admission(refused=WRONG_NAMESPACE)
    dropped = strategy.disabled_gates(new, None, context)
    new = strategy.prepare_for_create(new, context)
    errors = strategy.validate(new, context)
    if prefix:  # The stand-in is for readers, who want to see the whole prefix.
        new = _with_metadata(new, name=f"{prefix}{GENERATED_SUFFIX}")
    return _conclude(new, errors, kind, context, _drop_warnings(dropped, context))


def admit_update(new_value: Any, old: Any, kind: Kind, context: Context) -> Admission:
    """Admit a change of everything but the status; `old` is in the hub version."""
    return _admit_change(new_value, old, kind, context, status=False)


def admit_status(new_value: Any, old: Any, kind: Kind, context: Context) -> Admission:
    """Admit a change of the status; `old` is in the hub version."""
    return _admit_change(new_value, old, kind, context, status=True)


def _admit_change(
    new_value: Any, old: Any, kind: Kind, context: Context, *, status: bool
) -> Admission:
    strategy = strategy_of(kind)
    new = read_hub(new_value, kind, context)
    new = _in_namespace(new, kind, old.metadata.namespace)
    if new.metadata.namespace != _expected_namespace(kind, old.metadata.namespace):
        return Admission(refused=WRONG_NAMESPACE)
    new, problem = _with_revision(new, old, kind, strategy)
    if isinstance(problem, str):
        return Admission(refused=problem)
    if problem is not None:
        return Admission(errors=(problem,))
    new = _with_metadata(new, generation=old.metadata.generation)
    dropped = (strategy.disabled_status_gates if status else strategy.disabled_gates)(
        new, old, context
    )
    if status:
        new = strategy.prepare_for_status_update(new, old, context)
    else:
        new = strategy.prepare_for_update(new, old, context)
    new = _with_kept_metadata(new, old.metadata)
    check = strategy.validate_status_update if status else strategy.validate_update
    errors = check_path_segments(new.metadata, namespaced=kind.namespaced)
    errors += check(new, old, context)
    errors = _ratcheted(errors, new, old)
    return _conclude(new, errors, kind, context, _drop_warnings(dropped, context))


def _ratcheted(errors: ErrorList, new: Any, old: Any) -> ErrorList:
    """Return the errors of an update.

    Declared rules do not look at what it leaves as it was. There the hand-written ones speak,
    unless a declared one says the same of something else at the same place.
    """
    found: ErrorList = []
    by_hand: ErrorList = []
    change = ObjectUpdate(new, old)
    for error in errors:
        if not error.declared or not _is_about_old(error, change):
            found.append(error)
        elif not error.alone:
            by_hand += twins_of(error)
    said = {(error.type, error.path) for error in found if error.declared}
    return found + [error for error in by_hand if (error.type, error.path) not in said]


def _is_about_old(error: FieldError, change: ObjectUpdate) -> bool:
    """Tell whether an error is about something that the change left as it was."""
    path, value = error.path, error.bad_value
    if error.type is ErrorType.DUPLICATE and path.parent is not None:
        path = path.parent  # It is the list that has something twice.
    return change.leaves(path, key=value if isinstance(value, str) else None)


def _conclude(
    new: Any, errors: ErrorList, kind: Kind, context: Context, warnings: Iterable[str] = ()
) -> Admission:
    if errors:
        written = _as_written(errors, kind)
        return Admission(errors=tuple(_once(written)), warnings=tuple(warnings))
    strategy = strategy_of(kind)
    stored = stored_form(new)
    if kind.api_version != kind.hub_version:
        # Whoever reads it from storage reads it with the defaults of the hub version.
        stored = _defaulted(stored, strategy, kind.hub_version, context)
    return Admission(stored=stored, warnings=(*warnings, *strategy.warnings_on_create(new)))


def _once(errors: ErrorList) -> Iterable[FieldError]:
    """Return the errors without what several rules say in the same words."""
    unique: dict[tuple[Path, str], FieldError] = {}
    for error in errors:
        unique.setdefault((error.path, error.body), error)
    return unique.values()


def _drop_warnings(gates: Iterable[Gate], context: Context) -> list[str]:
    """Return a warning for each feature whose fields are dropped; Kubernetes drops silently."""
    if not context.extensions:
        return []
    return [f"fields of {gate} are dropped, because its feature gate is off" for gate in gates]


def with_revision(value: Any, resource_version: str) -> Any:
    """Return the object as stored at a revision."""
    return _with_metadata(value, resource_version=resource_version)


def has_status(value: Any) -> bool:
    """Tell whether a written object comes with a status."""
    status = getattr(value, "status", None)
    return status is not None and status != type(status)()


# --- metadata -----------------------------------------------------------------------------


def _expected_namespace(kind: Kind, namespace: str) -> str:
    return namespace if kind.namespaced else ""


def _in_namespace(new: Any, kind: Kind, namespace: str) -> Any:
    if not kind.namespaced:
        return _with_metadata(new, namespace="") if new.metadata.namespace else new
    return new if new.metadata.namespace else _with_metadata(new, namespace=namespace)


def _without_system_fields(new: Any) -> Any:
    """Return the object without what only the server sets."""
    return _with_metadata(
        new,
        uid="",
        self_link="",
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
    )


def _generate_name(new: Any) -> Any:
    """Return the object with a stand-in for the name that the server would make up."""
    meta: ObjectMeta = new.metadata
    if meta.name or not meta.generate_name:
        return new
    prefix = meta.generate_name.encode("utf-8", "surrogatepass")[:GENERATED_PREFIX_MAX_BYTES]
    return _with_metadata(new, name=f"{prefix.decode(errors='replace')}{GENERATED_SUFFIX}")


REVISION_MAX = 2**64 - 1
GENERATED_SUFFIX = "xxxxx"
GENERATED_PREFIX_MAX_BYTES = 63 - len(GENERATED_SUFFIX)


def _with_revision(
    new: Any, old: Any, kind: Kind, strategy: Strategy[Any]
) -> tuple[Any, str | FieldError | None]:
    """Return the object with the revision it replaces, and what speaks against the update."""
    stored = old.metadata.resource_version
    try:
        revision, old_revision = map(_revision, (new.metadata.resource_version, stored))
    except ValueError as error:
        return new, str(error)
    if revision == 0:
        if not (strategy.allow_unconditional_update or _is_old_taint_rule(kind)):
            path = METADATA.child("resourceVersion")
            return new, invalid(path, 0, "must be specified for an update")
        return _with_metadata(new, resource_version=stored), None
    if old_revision not in (0, revision):
        return new, CONFLICT
    return new, None


def _revision(text: str) -> int:
    """Return the number of a resourceVersion; none is zero."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax")
    digits = text.lstrip("0")
    if len(digits) > 20 or int(digits or "0") > REVISION_MAX:
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(digits or "0")


def _is_old_taint_rule(kind: Kind) -> bool:
    return kind.name == "DeviceTaintRule" and kind.version in ("v1beta2", "v1alpha3")


def _with_kept_metadata(new: Any, old: ObjectMeta) -> Any:
    """Return the object with what no update can change."""
    meta: ObjectMeta = new.metadata
    grace = meta.deletion_grace_period_seconds
    is_deleted = old.deletion_timestamp is not None and not old.deletion_timestamp.is_zero
    return _with_metadata(
        new,
        uid=meta.uid or old.uid,
        creation_timestamp=old.creation_timestamp or meta.creation_timestamp,
        deletion_timestamp=old.deletion_timestamp if is_deleted else meta.deletion_timestamp,
        deletion_grace_period_seconds=(
            old.deletion_grace_period_seconds if grace is None else grace
        ),
    )


def _with_metadata(value: Any, **changes: Any) -> Any:
    return replace(value, metadata=replace(value.metadata, **changes))


# --- the written layout -------------------------------------------------------------------


def written_path(path: Path, kind: Kind) -> Path:
    """Return where the user wrote what stands at a path of the hub version."""
    if kind.api_version != v1beta1.API_VERSION:
        return path
    segments = list(path.segments)
    match segments:
        case ["spec", "devices", int(), field, *_] if field not in ("name", "basic"):
            segments.insert(3, "basic")
        case ["spec", "devices", "requests", int(), "exactly", *_]:
            del segments[4]
        case ["spec", "spec", "devices", "requests", int(), "exactly", *_]:
            del segments[5]
    return path_of(segments)


def _as_written(errors: ErrorList, kind: Kind) -> ErrorList:
    """Return the errors with declared rules placed in the layout that the user wrote."""
    return [
        replace(error, path=written_path(error.path, kind)) if error.declared else error
        for error in errors
    ]
