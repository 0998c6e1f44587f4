"""Who uses what in a cluster: the entry points, and every claim with its devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from moorage.allocator.features import ALL_FEATURES, Features
from moorage.allocator.ledger import Ledger
from moorage.allocator.taints import TaintRules
from moorage.api.core import Pod
from moorage.api.gates import Gate
from moorage.api.meta import Condition
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    POD_CLAIM_ANNOTATION,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from moorage.api.tolerations import DeviceName
from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.claims.pod_claims import controller_of, group_name
from moorage.claims.reservations import is_group_consumer, is_pod_consumer
from moorage.insight.devices.changed_pools import changed_pools, only_pools
from moorage.insight.devices.device_usage import DeviceUsages
from moorage.insight.devices.model import (
    ClaimId,
    ClaimState,
    ClaimUsage,
    ClusterUsage,
    Consumer,
    DeviceUsage,
    HeldDevice,
    Holder,
    RequestSummary,
)
from moorage.insight.devices.node_selection import only_node
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.strategy import Context

Conditions = Mapping[tuple[DeviceName, str], tuple[Condition, ...]]


def usage_in(snapshot: Snapshot, context: Context) -> ClusterUsage:
    """Return the usage of all devices, under the feature gates of a context."""
    return usage_of(
        snapshot,
        Features.of(context.gates),
        with_taint_rules=context.gates.enabled(Gate.DRA_DEVICE_TAINT_RULES),
        extensions=context.extensions,
    )


def usage_of(
    snapshot: Snapshot,
    features: Features = ALL_FEATURES,
    *,
    with_taint_rules: bool = True,
    extensions: bool = True,
) -> ClusterUsage:
    """Return the usage of all devices; `extensions` widens what taint rules may say."""
    book = _book_of(snapshot, features, with_taint_rules=with_taint_rules, extensions=extensions)
    devices = _sorted(book.devices())
    claims = tuple(ClaimUsages(snapshot, devices).claims())
    return ClusterUsage(devices, claims, book.nodes.are_known)


def devices_in(snapshot: Snapshot, context: Context) -> tuple[DeviceUsage, ...]:
    """Return all devices as `usage_in` does, without the claims."""
    book = _book_of(
        snapshot,
        Features.of(context.gates),
        with_taint_rules=context.gates.enabled(Gate.DRA_DEVICE_TAINT_RULES),
        extensions=context.extensions,
    )
    return _sorted(book.devices())


def devices_changed(
    devices: Iterable[DeviceUsage], before: Snapshot, after: Snapshot, context: Context
) -> tuple[DeviceUsage, ...]:
    """Return `devices_in` of a changed cluster, reusing earlier results for unchanged pools."""
    pools = changed_pools(before, after)
    if pools is None:
        return devices_in(after, context)
    kept = (each for each in devices if (each.id.driver, each.id.pool) not in pools)
    read = devices_in(only_pools(after, pools), context)
    return _sorted((*kept, *read))


def _sorted(devices: Iterable[DeviceUsage]) -> tuple[DeviceUsage, ...]:
    return tuple(sorted(devices, key=lambda each: (each.id, each.slice_name)))


def _book_of(
    snapshot: Snapshot, features: Features, *, with_taint_rules: bool, extensions: bool
) -> DeviceUsages:
    ledger = Ledger(shares_are_whole=not features.consumable_capacity)
    for claim in snapshot.claims:
        ledger.put(claim)
    rules = TaintRules(DeviceCompiler(CelFeatures(list_attributes=True), extensions=extensions))
    if with_taint_rules:
        for device_class in snapshot.classes:
            rules.put_class(device_class)
        for rule in snapshot.taint_rules:
            rules.put(rule)
    return DeviceUsages(
        snapshot.slices,
        snapshot.nodes,
        ledger=ledger,
        holders=_holder_index(snapshot.claims),
        features=features,
        rules=rules,
        unread=snapshot.unread,
    )


class ClaimUsages:
    """Collects every claim of a cluster with its devices and consumers."""

    def __init__(self, snapshot: Snapshot, devices: Iterable[DeviceUsage]) -> None:
        self._snapshot = snapshot
        self._devices: dict[DeviceName, DeviceUsage] = {}
        for holding in devices:
            # Of several with one name, the one with holders.
            if holding.id not in self._devices or holding.holders:
                self._devices[holding.id] = holding
        self._pods: dict[tuple[str, str], Pod] = {}
        self._members: dict[tuple[str, str], list[Pod]] = {}
        for pod in snapshot.pods:
            namespace = pod.metadata.namespace
            self._pods[namespace, pod.metadata.name] = pod
            if group := group_name(pod):
                self._members.setdefault((namespace, group), []).append(pod)

    def claims(self) -> Iterator[ClaimUsage]:
        """Yield every claim, sorted by namespace and name."""
        for claim in sorted(self._snapshot.claims, key=_id):
            yield self._claim(claim)

    def _claim(self, claim: ResourceClaim) -> ClaimUsage:
        consumers = _consumers_of(claim)
        held = tuple(self._held(claim))
        places = [each.node for each in held if each.node]
        places += self._nodes_of(claim.metadata.namespace, consumers)
        controller = controller_of(claim.metadata)
        return ClaimUsage(
            id=_id(claim),
            state=state_of(claim),
            claim=claim,
            requests=tuple(_wanted(claim)),
            devices=held,
            owner=Consumer(controller.kind.lower(), controller.name) if controller else None,
            template=self._template(claim),
            consumers=consumers,
            nodes=tuple(dict.fromkeys(places)),
        )

    def _held(self, claim: ResourceClaim) -> Iterator[HeldDevice]:
        allocation = claim.status.allocation
        if allocation is None:
            return
        chosen = only_node(allocation.node_selector) if allocation.node_selector else ""
        conditions = _conditions(claim)
        for result in allocation.devices.results:
            device_id = _device_of(result)
            known = self._devices.get(device_id)
            is_published: bool | None = known is not None and bool(known.slice_name)
            if not is_published and not self._snapshot.unread.knows("ResourceSlice"):
                is_published = None
            yield HeldDevice(
                id=device_id,
                request=result.request,
                node=(known.node_selection.node if known is not None else "") or chosen,
                is_published=is_published,
                is_admin=bool(result.admin_access),
                share_id=result.share_id or "",
                consumed=_consumed(result),
                conditions=conditions.get((device_id, result.share_id or ""), ()),
                conflict=known.conflict if known is not None and not result.admin_access else "",
            )

    def _nodes_of(self, namespace: str, consumers: Iterable[Consumer]) -> Iterator[str]:
        for consumer in consumers:
            key = (namespace, consumer.name)
            pods: Iterable[Pod] = ()
            if consumer.kind == "pod":
                pods = [self._pods[key]] if key in self._pods else []
            elif consumer.kind == "podgroup":
                pods = self._members.get(key, ())
            yield from (pod.spec.node_name for pod in pods if pod.spec.node_name)

    def _template(self, claim: ResourceClaim) -> str:
        """Return the template that a claim was created from, if its pod is known."""
        entry_name = claim.metadata.annotations.get(POD_CLAIM_ANNOTATION)
        owner = controller_of(claim.metadata)
        if entry_name is None or owner is None:
            return ""
        pod = self._pods.get((claim.metadata.namespace, owner.name))
        if pod is None or owner.kind != "Pod":
            return ""
        names = (
            entry.resource_claim_template_name
            for entry in pod.spec.resource_claims
            if entry.name == entry_name
        )
        return next(names, None) or ""


def _holder_index(claims: Iterable[ResourceClaim]) -> dict[DeviceName, list[Holder]]:
    """Return the holders of each device, by the names of their claims."""
    found: dict[DeviceName, list[Holder]] = {}
    for claim in sorted(claims, key=_id):
        if claim.status.allocation is None:
            continue
        consumers = _consumers_of(claim)
        for result in claim.status.allocation.devices.results:
            found.setdefault(_device_of(result), []).append(
                Holder(
                    claim=_id(claim),
                    request=result.request,
                    is_admin=bool(result.admin_access),
                    share_id=result.share_id or "",
                    consumed=_consumed(result),
                    consumers=consumers,
                )
            )
    return found


def _consumers_of(claim: ResourceClaim) -> tuple[Consumer, ...]:
    return tuple(map(_consumer, claim.status.reserved_for))


def _consumer(reference: ResourceClaimConsumerReference) -> Consumer:
    if is_pod_consumer(reference):
        return Consumer("pod", reference.name)
    if is_group_consumer(reference):
        return Consumer("podgroup", reference.name)
    group = f".{reference.api_group}" if reference.api_group else ""
    return Consumer(f"{reference.resource}{group}", reference.name)


def _id(claim: ResourceClaim) -> ClaimId:
    return ClaimId(claim.metadata.namespace, claim.metadata.name)


def _device_of(result: DeviceRequestAllocationResult) -> DeviceName:
    return DeviceName(result.driver, result.pool, result.device)


def _consumed(result: DeviceRequestAllocationResult) -> tuple[tuple[str, Quantity], ...]:
    return tuple(sorted((result.consumed_capacity or {}).items(), key=lambda item: item[0]))


def state_of(claim: ResourceClaim) -> ClaimState:
    """Return the state of a claim."""
    if claim.metadata.deletion_timestamp is not None:
        return ClaimState.DELETING
    if claim.status.allocation is None:
        return ClaimState.PENDING
    return ClaimState.RESERVED if claim.status.reserved_for else ClaimState.ALLOCATED


def _conditions(claim: ResourceClaim) -> Conditions:
    return {
        (DeviceName(each.driver, each.pool, each.device), each.share_id or ""): each.conditions
        or ()
        for each in claim.status.devices
    }


def _wanted(claim: ResourceClaim) -> Iterator[RequestSummary]:
    allocation = claim.status.allocation
    given = [result.request for result in allocation.devices.results] if allocation else []
    for request in claim.spec.devices.requests or ():
        yield _request(request, given)


def _request(request: DeviceRequest, given: Iterable[str]) -> RequestSummary:
    if not request.first_available:
        exactly = request.exactly or ExactDeviceRequest()
        count = "all" if exactly.allocation_mode == "All" else str(exactly.count)
        return RequestSummary(request.name, (exactly.device_class_name,), count)
    alternatives = request.first_available
    chosen = next(
        (each for each in alternatives if f"{request.name}/{each.name}" in set(given)), None
    )
    shown = (chosen,) if chosen is not None else alternatives
    counts = ["all" if each.allocation_mode == "All" else str(each.count) for each in shown]
    classes = tuple(each.device_class_name for each in shown)
    return RequestSummary(request.name, classes, " or ".join(counts), chosen.name if chosen else "")
