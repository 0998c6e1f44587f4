"""Plugins that set fields from classes: Priority, RuntimeClass, and those of storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.core.persistent_volume import (
    BETA_STORAGE_CLASS,
    BOUND,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    PersistentVolume,
    PersistentVolumeClaim,
    storage_class_of,
)
from moorage.api.gates import Gate, Gates
from moorage.api.meta import ObjectMeta
from moorage.api.runtime_class import GROUP as NODE
from moorage.api.runtime_class import RuntimeClass
from moorage.api.scheduling import GROUP as SCHEDULING
from moorage.api.scheduling import CompositePodGroup, PodGroup, PriorityClass
from moorage.api.storage import StorageClass
from moorage.api.timestamp import Timestamp
from moorage.apiserver.admission.cache import AdmissionCache
from moorage.apiserver.resources import Resources
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.claims.pod_claims import ClaimRejection
from moorage.claims.runtime_classes import with_runtime
from moorage.kit.go_quote import go_quote

PREEMPT = "PreemptLowerPriority"

# The server creates them: without them nothing that a cluster needs would have a higher priority
# than what users run.
SYSTEM_CLASSES = (
    PriorityClass(
        metadata=ObjectMeta(name="system-node-critical"),
        value=2_000_001_000,
        description=(
            "Used for system critical pods that must not be moved from their current node."
        ),
        preemption_policy=PREEMPT,
    ),
    PriorityClass(
        metadata=ObjectMeta(name="system-cluster-critical"),
        value=2_000_000_000,
        description=(
            "Used for system critical pods that must run in the cluster, but can be moved to "
            "another node if necessary."
        ),
        preemption_policy=PREEMPT,
    ),
)


_POD = (
    "the integer value of priority ({given}) must not be provided in pod spec; priority admission "
    "controller computed {computed} from the given PriorityClass name"
)
_GROUP = (
    "priority set in the {noun} ({given}) must match the priority computed ({computed}) based on "
    "the priority class set in the spec"
)
_POLICY = (
    "the string value of PreemptionPolicy ({given}) must not be provided in {noun} spec; priority "
    "admission controller computed {computed} from the given PriorityClass name"
)
_NO_OVERHEAD = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class PriorityAdmission:
    """Gives pods and pod groups the priority of their class, else of the default class, else 0."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        cache: AdmissionCache,
        *,
        gates: Gates,
        now: Callable[[], Timestamp],
        new_uid: Callable[[], str],
    ) -> None:
        self._registry = registry
        self._resource = resources.of(SCHEDULING, "priorityclasses")
        self._classes = cache.priorities
        self._gates = gates
        self._now = now
        self._new_uid = new_uid

    async def create_system_classes(self) -> None:
        """Create the system priority classes that are missing."""
        for wanted in SYSTEM_CLASSES:
            if await self._registry.find(self._resource, "", wanted.metadata.name) is None:
                metadata = replace(
                    wanted.metadata,
                    uid=self._new_uid(),
                    generation=1,
                    creation_timestamp=self._now(),
                )
                await self._registry.create(self._resource, replace(wanted, metadata=metadata))

    async def admit(self, request: ResourceRequest, new: Any) -> Any:
        """Return a new object with its priority, or raise 403."""
        self.check_default(request, new)
        if not takes_priority(new, self._gates):
            return new
        result = prioritized(new, await self._class_of(request, new), self._gates)
        if isinstance(result, ClaimRejection):
            raise request.forbidden(new, result.reason)
        return result

    def check_default(self, request: ResourceRequest, new: Any) -> None:
        """Raise 403 if there would be two default classes."""
        if isinstance(new, PriorityClass):
            reason = second_default(new, self._classes.values())
            if reason is not None:
                raise request.forbidden(new, reason)

    async def _class_of(self, request: ResourceRequest, new: Any) -> PriorityClass | None:
        name = new.spec.priority_class_name
        if not name:
            return default_class(self._classes.values())
        found = self._classes.get(name) or await self._registry.find(self._resource, "", name)
        if found is None:
            raise request.forbidden(new, f"no PriorityClass with name {name} was found")
        return found


def takes_priority(value: Any, gates: Gates) -> bool:
    """Return whether an object gets a priority from a class."""
    match value:
        case Pod():
            return True
        case PodGroup():
            return gates.enabled(Gate.GENERIC_WORKLOAD)
        case CompositePodGroup():
            return gates.enabled(Gate.COMPOSITE_POD_GROUP)
    return False


def default_class(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """Return the class of objects that name none; the lowest, should there be several."""
    return min(
        (each for each in classes if each.global_default),
        key=lambda each: (each.value, each.metadata.name),
        default=None,
    )


def prioritized(value: Any, found: PriorityClass | None, gates: Gates) -> Any | ClaimRejection:
    """Return an object with the priority of its class, or why its own values are refused."""
    spec = value.spec
    name, priority, policy = "", 0, PREEMPT
    if found is not None:
        name, priority = found.metadata.name, found.value
        policy = found.preemption_policy or PREEMPT
    noun = "pod" if isinstance(value, Pod) else _group_noun(value)
    if spec.priority is not None and spec.priority != priority:
        words = _POD if isinstance(value, Pod) else _GROUP
        return ClaimRejection(words.format(given=spec.priority, computed=priority, noun=noun))
    spec = replace(spec, priority=priority, priority_class_name=name)
    if not isinstance(value, Pod) and not gates.enabled(Gate.POD_GROUP_PREEMPTION_POLICY):
        return replace(value, spec=spec)
    if spec.preemption_policy is not None and spec.preemption_policy != policy:
        given = spec.preemption_policy
        return ClaimRejection(_POLICY.format(given=given, computed=policy, noun=noun))
    return replace(value, spec=replace(spec, preemption_policy=policy))


def _group_noun(value: Any) -> str:
    return "pod group" if isinstance(value, PodGroup) else "composite pod group"


def second_default(new: PriorityClass, classes: Iterable[PriorityClass]) -> str | None:
    """Return why a class may not be the default: another class is."""
    known = default_class(each for each in classes if each.metadata.name != new.metadata.name)
    if not new.global_default or known is None:
        return None
    name = known.metadata.name
    return f"PriorityClass {name} is already marked as default. Only one default can exist"


# --- runtime classes ------------------------------------------------------------------------------


class RuntimeClassAdmission:
    """Gives pods the overhead, node selector and tolerations of their runtime class."""

    def __init__(self, registry: Registry, resources: Resources, cache: AdmissionCache) -> None:
        self._registry = registry
        self._resource = resources.of(NODE, "runtimeclasses")
        self._classes = cache.runtimes

    async def admit(self, request: ResourceRequest, pod: Pod, *, is_valid: bool) -> Pod:
        """Return a pod with what its runtime class adds, or raise 403."""
        runtime = await self._class_of(request, pod)
        has_overhead = runtime is not None and runtime.overhead is not None
        if is_valid and pod.spec.overhead and not has_overhead:
            raise request.forbidden(pod, _NO_OVERHEAD)
        result = with_runtime(pod, runtime)
        if isinstance(result, ClaimRejection):
            raise request.forbidden(pod, result.reason)
        return result

    async def _class_of(self, request: ResourceRequest, pod: Pod) -> RuntimeClass | None:
        name = pod.spec.runtime_class_name
        if name is None:
            return None
        found = self._classes.get(name)
        if found is None and name:
            found = await self._registry.find(self._resource, "", name)
        if found is None:
            why = f"pod rejected: RuntimeClass {go_quote(name)} not found"
            raise request.forbidden(pod, why)
        return found


def without_merged(value: Any, mutated: Any) -> Any | None:
    """Return a written pod without tolerations that RuntimeClass has merged into others.

    None if there are none. Whether such a toleration is valid does not matter.
    """
    if not isinstance(mutated, Pod) or mutated.spec.runtime_class_name is None:
        return None
    merged = set(map(repr, mutated.spec.tolerations))
    kept = tuple(each for each in value.spec.tolerations if repr(each) in merged)
    if len(kept) == len(value.spec.tolerations):
        return None
    return replace(value, spec=replace(value.spec, tolerations=kept))


# --- DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize ---------------


class StorageObjects:
    """Sets defaults of new claims and volumes."""

    def __init__(self, cache: AdmissionCache) -> None:
        self._cache = cache

    def admit(self, new: Any) -> Any:
        """Return a new claim with the default class, and claims and volumes with a finalizer."""
        if isinstance(new, PersistentVolumeClaim):
            return _protected(self._with_class(new), CLAIM_PROTECTION)
        if isinstance(new, PersistentVolume):
            return _protected(new, VOLUME_PROTECTION)
        return new

    def check_growth(self, request: ResourceRequest, new: Any, old: Any) -> None:
        """PersistentVolumeClaimResize: raise if a claim grows and its class forbids that."""
        if not isinstance(new, PersistentVolumeClaim) or request.target.subresource or old is None:
            return
        before, after = (each.spec.resources.requests.get("storage") for each in (old, new))
        if after is None or (before is not None and after <= before):
            return
        found = self._cache.storage_classes.get(storage_class_of(new))
        refused = None
        if old.status.phase != BOUND:
            refused = "Only bound persistent volume claims can be expanded"
        elif found is None or not found.allow_volume_expansion:
            refused = (
                "only dynamically provisioned pvc can be resized and the storageclass that "
                "provisions the pvc must support resize"
            )
        if refused is not None:
            raise request.forbidden(new, refused)

    def _with_class(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        has_class = claim.spec.storage_class_name is not None
        if has_class or BETA_STORAGE_CLASS in claim.metadata.annotations:
            return claim
        default = self._default_class()
        if default is None:
            return claim
        return replace(claim, spec=replace(claim.spec, storage_class_name=default.metadata.name))

    def _default_class(self) -> StorageClass | None:
        """Return the newest default class; of equally old ones, the first by name."""
        found = [each for each in self._cache.storage_classes.values() if each.is_default]
        found.sort(key=lambda each: each.metadata.name)
        return max(found, key=_born, default=None)


def _born(value: StorageClass) -> float:
    created = value.metadata.creation_timestamp
    return 0.0 if created is None else created.instant.timestamp()


def _protected(value: Any, finalizer: str) -> Any:
    held = value.metadata.finalizers
    if finalizer in held:
        return value
    return replace(value, metadata=replace(value.metadata, finalizers=(*held, finalizer)))
