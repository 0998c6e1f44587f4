"""Which devices are tainted so that pods leave them, and which claims and pods use these.

Only the pools of the claims at hand are looked at: no taints are kept beside the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.allocator.taints import TaintRules
from moorage.api.core.placement import NO_EXECUTE
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.cel.device import DeviceCompiler
from moorage.claims.reservations import is_group_consumer, is_pod_consumer
from moorage.claims.taint_evictions import RuleSelects, TaintedDevices
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.controllers import resource_claim_entries

BY_POOL = "device pools"
EVICTING = "evicting slices"


def prepare(objects: Indexer) -> None:
    """Add the indexes that lead from slices to claims, and from claims to pods."""
    resource_claim_entries.prepare(objects)
    objects.index(ResourceClaim, BY_POOL, _pools_of_claim)
    objects.index(ResourceSlice, BY_POOL, lambda each: (pool_key(each),))
    objects.index(ResourceSlice, EVICTING, lambda each: ("",) if evicts(each) else ())


def meaning(objects: Indexer, compiler: DeviceCompiler) -> RuleSelects:
    """Return a predicate for whether a rule selects a device, also by class and by CEL."""
    rules = TaintRules(compiler)
    for name in {_class_name(rule) for rule in objects.list(DeviceTaintRule)} - {None}:
        device_class = objects.get(DeviceClass, "", name or "")
        if device_class is not None:
            rules.put_class(device_class)
    return rules.selects


def marked_devices(
    objects: Indexer,
    claims: Iterable[ResourceClaim],
    rules: Iterable[DeviceTaintRule],
    means: RuleSelects,
) -> TaintedDevices:
    """Return the devices of all pools that the claims have devices of."""
    pools = {pool for claim in claims for pool in _pools_of_claim(claim)}
    slices = (each for pool in pools for each in objects.by_index(ResourceSlice, BY_POOL, pool))
    return TaintedDevices(slices, rules, means=means)


def pool_key(slice_: ResourceSlice) -> str:
    """Return what names the pool of a slice."""
    return f"{slice_.spec.driver}/{slice_.spec.pool.name}"


def evicts(slice_: ResourceSlice | None) -> bool:
    """Return whether a device of a slice has a taint that evicts."""
    devices = (slice_.spec.devices or ()) if slice_ is not None else ()
    return any(taint.effect == NO_EXECUTE for device in devices for taint in device.taints)


def something_evicts(objects: Indexer, rules: Iterable[DeviceTaintRule]) -> bool:
    """Return whether any taint there is evicts, which is rarely so."""
    if objects.by_index(ResourceSlice, EVICTING, ""):
        return True
    return any(rule.spec.taint.effect == NO_EXECUTE for rule in rules)


def selects_by_content(rule: DeviceTaintRule) -> bool:
    """Return whether more than the name decides which devices a rule means (an extension)."""
    selector = rule.spec.device_selector
    return selector is not None and (
        selector.device_class_name is not None or bool(selector.selectors)
    )


def users(objects: Indexer, claims: Iterable[ResourceClaim | None]) -> Iterator[ObjectKey]:
    """Yield the pods that claims are reserved for, by themselves or by their groups."""
    for claim in claims:
        if claim is None:
            continue
        namespace = claim.metadata.namespace
        for consumer in claim.status.reserved_for:
            if is_pod_consumer(consumer):
                yield namespace, consumer.name
            elif is_group_consumer(consumer):
                yield from map(
                    object_key, resource_claim_entries.members(objects, namespace, consumer.name)
                )


def claims_of_pool(objects: Indexer, pool: str) -> Iterable[ResourceClaim]:
    """Return the claims that have devices of a pool."""
    return objects.by_index(ResourceClaim, BY_POOL, pool)


def pods_with_claims(objects: Indexer) -> Iterator[Pod]:
    """Yield the pods on nodes that use claims."""
    for pod in objects.list(Pod):
        if pod.spec.node_name and pod.spec.resource_claims:
            yield pod


def _class_name(rule: DeviceTaintRule) -> str | None:
    selector = rule.spec.device_selector
    return None if selector is None else selector.device_class_name


def _pools_of_claim(claim: ResourceClaim) -> set[str]:
    allocation = claim.status.allocation
    if allocation is None:
        return set()
    return {f"{result.driver}/{result.pool}" for result in allocation.devices.results}
