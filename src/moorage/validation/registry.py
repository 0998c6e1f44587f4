"""The registry: turns the object that a user wrote into the one that is stored.

    written object → hub version → default → prepare → validate → canonicalize → stored object

`before_create`, `before_update` and `before_status_update` run the steps of a kind's strategy, as
`rest.BeforeCreate` and `rest.BeforeUpdate` of Kubernetes do, without a server. Each returns a
RegistryResult: the object as it would be stored, or every error. Admission plugins come before.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moorage.api import events
from moorage.api.catalogue import to_hub
from moorage.api.custom_resource import is_custom
from moorage.api.field_path import Path
from moorage.api.gates import Gate
from moorage.api.kinds import Kind
from moorage.api.meta import ObjectMeta
from moorage.kit.go_quote import go_quote
from moorage.validation.admission_policy import ADMISSION_STRATEGIES
from moorage.validation.apps import (
    DaemonSetStrategy,
    DeploymentStrategy,
    ReplicaSetStrategy,
    StatefulSetStrategy,
)
from moorage.validation.autoscaling import HorizontalPodAutoscalerStrategy
from moorage.validation.cluster_kinds import (
    EventStrategy,
    LeaseStrategy,
    NewEventStrategy,
    PriorityClassStrategy,
    RuntimeClassStrategy,
)
from moorage.validation.cron_job import CronJobStrategy
from moorage.validation.custom_resources.definition_strategy import CustomResourceDefinitionStrategy
from moorage.validation.custom_resources.strategy import CustomResourceStrategy
from moorage.validation.data_kinds import DATA_STRATEGIES, PART_STRATEGIES
from moorage.validation.device_class import DeviceClassStrategy, DeviceTaintRuleStrategy
from moorage.validation.endpoints import ENDPOINT_STRATEGIES
from moorage.validation.equality import ratcheted, stored_form
from moorage.validation.errors import ErrorList, FieldError, first_errors, invalid, shown_errors
from moorage.validation.job import JobStrategy
from moorage.validation.limit_range import LimitRangeStrategy
from moorage.validation.metadata import METADATA, validate_path_segments
from moorage.validation.namespace import (
    ConfigMapStrategy,
    NamespaceStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from moorage.validation.node import NodeStrategy
from moorage.validation.persistent_volume import STORAGE_STRATEGIES
from moorage.validation.pod.strategy import PodStrategy
from moorage.validation.pod.subresources import EphemeralContainersStrategy, ResizeStrategy
from moorage.validation.pod_group import CompositePodGroupStrategy, PodGroupStrategy
from moorage.validation.policy import PodDisruptionBudgetStrategy
from moorage.validation.resource_claim import ResourceClaimStrategy, ResourceClaimTemplateStrategy
from moorage.validation.resource_pool_status_request import ResourcePoolStatusRequestStrategy
from moorage.validation.resource_quota import ResourceQuotaStrategy
from moorage.validation.resource_slice import ResourceSliceStrategy
from moorage.validation.scheduler_configuration import SchedulerConfigurationStrategy
from moorage.validation.service import ServiceStrategy
from moorage.validation.strategy import Context, MetadataStrategy, Strategy
from moorage.validation.versioned_paths import versioned_path
from moorage.validation.workload import WorkloadStrategy

STRATEGIES: dict[str, Strategy[Any]] = {
    **DATA_STRATEGIES,
    "CompositePodGroup": CompositePodGroupStrategy(),
    "ConfigMap": ConfigMapStrategy(),
    "CronJob": CronJobStrategy(),
    "CustomResourceDefinition": CustomResourceDefinitionStrategy(),
    "DaemonSet": DaemonSetStrategy(),
    "Deployment": DeploymentStrategy(),
    "DeviceClass": DeviceClassStrategy(),
    "DeviceTaintRule": DeviceTaintRuleStrategy(),
    "Event": EventStrategy(),
    "HorizontalPodAutoscaler": HorizontalPodAutoscalerStrategy(),
    "Job": JobStrategy(),
    "KubeSchedulerConfiguration": SchedulerConfigurationStrategy(),
    "Lease": LeaseStrategy(),
    "LimitRange": LimitRangeStrategy(),
    "Namespace": NamespaceStrategy(),
    "Node": NodeStrategy(),
    "Pod": PodStrategy(),
    "PodDisruptionBudget": PodDisruptionBudgetStrategy(),
    "PodGroup": PodGroupStrategy(),
    "PriorityClass": PriorityClassStrategy(),
    "ReplicaSet": ReplicaSetStrategy(),
    "ResourceClaim": ResourceClaimStrategy(),
    "ResourceClaimTemplate": ResourceClaimTemplateStrategy(),
    "ResourcePoolStatusRequest": ResourcePoolStatusRequestStrategy(),
    "ResourceQuota": ResourceQuotaStrategy(),
    "ResourceSlice": ResourceSliceStrategy(),
    "RuntimeClass": RuntimeClassStrategy(),
    "Secret": SecretStrategy(),
    "Service": ServiceStrategy(),
    "ServiceAccount": ServiceAccountStrategy(),
    "StatefulSet": StatefulSetStrategy(),
    "Workload": WorkloadStrategy(),
    **ADMISSION_STRATEGIES,
    **ENDPOINT_STRATEGIES,
    **STORAGE_STRATEGIES,
}
_PARTS: dict[tuple[str, str], Strategy[Any]] = {
    **PART_STRATEGIES,
    ("Pod", "ephemeralcontainers"): EphemeralContainersStrategy(),
    ("Pod", "resize"): ResizeStrategy(),
}
_NEW_EVENTS = NewEventStrategy()  # stored as core Events, but validated more strictly


CONFLICT = (
    "Conflict: the object has been modified; please apply your changes to the latest version "
    "and try again"
)
WRONG_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)


class RegistryResult(Struct, frozen=True):
    """The object as stored, unless there are errors or the request was refused."""

    stored: Any = None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str | None = None  # why the request contradicts itself or the stored object


def strategy_for(kind: Kind) -> Strategy[Any]:
    """Return the strategy of a kind."""
    if is_custom(kind.struct):
        return _custom_strategy(kind)
    if kind.api_version == events.API_VERSION:
        return _NEW_EVENTS
    return STRATEGIES.get(kind.name) or MetadataStrategy(kind)


@lru_cache(maxsize=256)
def _custom_strategy(kind: Kind) -> Strategy[Any]:
    return CustomResourceStrategy(kind)


def defaulted_hub(value: Any, kind: Kind, context: Context, *, status: bool = False) -> Any:
    """Return a written object in its hub version, with defaults."""
    # Custom resources are validated in the version in which they are written.
    hub = value if is_custom(kind.struct) else to_hub(value, kind)
    metadata: ObjectMeta | None = getattr(hub, "metadata", None)
    if metadata and metadata.creation_timestamp and metadata.creation_timestamp.is_zero:
        hub = _with_metadata(hub, creation_timestamp=None)
    strategy = strategy_for(kind)
    default = strategy.default_for_status_update if status else strategy.default
    return default(hub, kind.api_version, context)


def before_create(
    value: Any, kind: Kind, context: Context, *, namespace: str = "default"
) -> RegistryResult:
    """Prepare and validate a new object."""
    strategy = strategy_for(kind)
    new = defaulted_hub(value, kind, context)
    if not hasattr(new, "metadata"):  # a configuration file, not an object of an API server
        errors = first_errors(partial(strategy.validate, new, context))
        return _canonicalized(new, errors, kind, context)
    prefix = "" if new.metadata.name else new.metadata.generate_name
    new = _generate_name(_in_namespace(_without_system_fields(new), kind, namespace))
    if new.metadata.namespace != _expected_namespace(kind, namespace):
        return RegistryResult(refused=WRONG_NAMESPACE)
    dropped = strategy.disabled_gates(new, None, context)
    warnings = [*strategy.warnings_on_prepare(new), *_drop_warnings(dropped, context)]
    new = strategy.prepare_for_create(new, context)
    context.check_size(new)  # before a long validation
    errors = first_errors(partial(strategy.validate, new, context))
    if not errors:
        warnings += strategy.warnings_on_create(new)
    if prefix:  # The placeholder is for readers, who want to see the whole prefix.
        new = _with_metadata(new, name=f"{prefix}{GENERATED_SUFFIX}")
    return _canonicalized(new, errors, kind, context, warnings)


def before_update(
    new_value: Any, old: Any, kind: Kind, context: Context, subresource: str = ""
) -> RegistryResult:
    """Prepare and validate an update of everything but the status; `old` is in the hub version.

    Of a subresource with a strategy of its own, only that part changes.
    """
    part = None if is_custom(kind.struct) else _PARTS.get((kind.name, subresource))
    strategy = part or strategy_for(kind)
    return _before_update(new_value, old, kind, context, strategy, status=False)


def before_status_update(new_value: Any, old: Any, kind: Kind, context: Context) -> RegistryResult:
    """Prepare and validate an update of the status; `old` is in the hub version."""
    return _before_update(new_value, old, kind, context, strategy_for(kind), status=True)


def _before_update(
    new_value: Any,
    old: Any,
    kind: Kind,
    context: Context,
    strategy: Strategy[Any],
    *,
    status: bool,
) -> RegistryResult:
    new = defaulted_hub(new_value, kind, context, status=status)
    new = _in_namespace(new, kind, old.metadata.namespace)
    if new.metadata.namespace != _expected_namespace(kind, old.metadata.namespace):
        return RegistryResult(refused=WRONG_NAMESPACE)
    new, problem = _with_current_version(new, old, kind, strategy)
    if isinstance(problem, str):
        return RegistryResult(refused=problem)
    if problem is not None:
        return RegistryResult(errors=(problem,))
    if new.metadata.generation != old.metadata.generation:
        new = _with_metadata(new, generation=old.metadata.generation)
    if status:
        dropped = strategy.disabled_status_gates(new, old, context)
        new = strategy.prepare_for_status_update(new, old, context)
        validate = strategy.validate_status_update
    else:
        dropped = strategy.disabled_gates(new, old, context)
        new = strategy.prepare_for_update(new, old, context)
        validate = strategy.validate_update
    new = _with_kept_metadata(new, old.metadata)
    context.check_size(new)
    errors = validate_path_segments(new.metadata, namespaced=kind.namespaced)
    ignored: list[str] = []
    errors += first_errors(partial(validate, new, old, context), ignored)
    errors = ratcheted(errors, new, old)
    warnings = [*ignored, *_drop_warnings(dropped, context)]
    if not errors and status:
        warnings += strategy.warnings_on_status_update(new)
    elif not errors:
        warnings += strategy.warnings_on_update(new, old)
    return _canonicalized(new, errors, kind, context, warnings, old)


def _canonicalized(
    new: Any,
    errors: ErrorList,
    kind: Kind,
    context: Context,
    warnings: Iterable[str] = (),
    old: Any = None,
) -> RegistryResult:
    if errors:
        found = tuple(_without_repetitions(errors, kind))
        return RegistryResult(errors=found, warnings=tuple(warnings))
    strategy = strategy_for(kind)
    stored = stored_form(new, old if type(old) is type(new) else None)
    if kind.api_version != kind.hub_version:
        # Whoever reads the object from storage reads it with the defaults of the hub version.
        stored = strategy.default(stored, kind.hub_version, context)
    return RegistryResult(stored=stored, warnings=tuple(warnings))


def _without_repetitions(errors: ErrorList, kind: Kind) -> Iterable[FieldError]:
    """Return each error once, declared ones at the path in the version that the user wrote."""
    unique: dict[tuple[Path, str], FieldError] = {}
    for error in shown_errors(errors):
        if error.declared:
            error = replace(error, path=versioned_path(error.path, kind))
        unique.setdefault((error.path, error.body), error)
    return unique.values()


def _drop_warnings(gates: Iterable[Gate], context: Context) -> list[str]:
    """Return a warning for each feature whose fields are dropped; Kubernetes drops silently."""
    if not context.extensions:
        return []
    return [f"fields of {gate} are dropped, because its feature gate is off" for gate in gates]


def with_resource_version(value: Any, resource_version: str) -> Any:
    """Return the object with another resourceVersion."""
    return _with_metadata(value, resource_version=resource_version)


def has_status(value: Any) -> bool:
    """Return whether a manifest has a status."""
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
    """Return the object without the fields that only the server sets."""
    return _with_metadata(
        new,
        uid="",
        self_link="",
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
    )


def _generate_name(new: Any) -> Any:
    """Return the object with a placeholder for the name that the server would generate."""
    meta: ObjectMeta = new.metadata
    if meta.name or not meta.generate_name:
        return new
    prefix = meta.generate_name.encode("utf-8", "surrogatepass")[:GENERATED_PREFIX_MAX_BYTES]
    return _with_metadata(new, name=f"{prefix.decode(errors='replace')}{GENERATED_SUFFIX}")


RESOURCE_VERSION_MAX = 2**64 - 1
GENERATED_SUFFIX = "xxxxx"
GENERATED_PREFIX_MAX_BYTES = 63 - len(GENERATED_SUFFIX)


def _with_current_version(
    new: Any, old: Any, kind: Kind, strategy: Strategy[Any]
) -> tuple[Any, str | FieldError | None]:
    """Return the object with the resourceVersion it replaces, and why the update is refused."""
    stored = old.metadata.resource_version
    if new.metadata.resource_version == stored and stored[:1] not in ("", "0"):
        return new, None
    try:
        version, old_version = map(_resource_version, (new.metadata.resource_version, stored))
    except ValueError as error:
        return new, str(error)
    if version == 0:
        if not (strategy.allow_unconditional_update or _is_old_taint_rule(kind)):
            path = METADATA.child("resourceVersion")
            return new, invalid(path, 0, "must be specified for an update")
        return _with_metadata(new, resource_version=stored), None
    if old_version not in (0, version):
        return new, CONFLICT
    return new, None


def _resource_version(text: str) -> int:
    """Return the number of a resourceVersion; an absent one is 0."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"strconv.ParseUint: parsing {go_quote(text)}: invalid syntax")
    digits = text.lstrip("0")
    if len(digits) > 20 or int(digits or "0") > RESOURCE_VERSION_MAX:
        raise ValueError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    return int(digits or "0")


def _is_old_taint_rule(kind: Kind) -> bool:
    return kind.name == "DeviceTaintRule" and kind.version in ("v1beta2", "v1alpha3")


def _with_kept_metadata(new: Any, old: ObjectMeta) -> Any:
    """Return the object with the metadata that no update can change."""
    meta: ObjectMeta = new.metadata
    grace = meta.deletion_grace_period_seconds
    if _server_set(meta) == _server_set(old):
        return new
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


def _server_set(meta: ObjectMeta) -> tuple[Any, ...]:
    return (
        meta.uid,
        meta.creation_timestamp,
        meta.deletion_timestamp,
        meta.deletion_grace_period_seconds,
    )


def _with_metadata(value: Any, **changes: Any) -> Any:
    return replace(value, metadata=replace(value.metadata, **changes))
