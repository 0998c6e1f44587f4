"""Quotas of a snapshot: whether new pods and claims still fit, as admission would charge them.

Usage is what the quota's status says. A quota without a status is new: its usage is counted from
the objects of its namespace, as the quota controller does; and so are the amounts that a changed
quota limits anew.

    # new: no server has seen it, so admission charges it now
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.core.namespace import ResourceQuota
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims import DeviceClassIndex
from moorage.claims.pod_claims import ClaimRejection, controller_of
from moorage.claims.quotas import (
    CLAIMS,
    PODS,
    GroupResource,
    charged,
    evaluator_for,
    recalculated,
    usage_context,
)
from moorage.insight.messages import full_name
from moorage.insight.snapshot.snapshot import Snapshot, is_new
from moorage.insight.snapshot.stand_ins import stands_for
from moorage.validation.strategy import Context

TEMPLATES: Final = GroupResource("resource.k8s.io", "resourceclaimtemplates")


class SnapshotQuotas:
    """Charges quotas for objects that are created."""

    def __init__(self, snapshot: Snapshot, context: Context) -> None:
        self._context = context
        self._quotas: dict[str, list[ResourceQuota]] = defaultdict(list)
        if not snapshot.quotas:
            return
        self._classes = DeviceClassIndex()
        for each in snapshot.classes:
            self._classes.put_class(each)
        spaces = {quota.metadata.namespace for quota in snapshot.quotas}
        self._objects: dict[str, dict[GroupResource, list[Any]]] = {
            space: {PODS: [], CLAIMS: [], TEMPLATES: []} for space in spaces
        }
        kept: tuple[tuple[GroupResource, tuple[Any, ...]], ...] = (
            (PODS, snapshot.pods),
            (CLAIMS, snapshot.claims),
            (TEMPLATES, snapshot.templates),
        )
        for resource, values in kept:
            for each in values:
                if each.metadata.namespace in spaces and not is_charged(each):
                    self._objects[each.metadata.namespace][resource].append(each)
        for quota in snapshot.quotas:
            self._quotas[quota.metadata.namespace].append(self._with_usage(quota))

    def _with_usage(self, quota: ResourceQuota) -> ResourceQuota:
        status, hard = quota.status, quota.spec.hard
        if status.hard and status.hard == hard:
            return quota
        namespace = quota.metadata.namespace
        counted = recalculated(quota, self._objects[namespace], self._usage_context(namespace))
        used = {name: status.used.get(name, amount) for name, amount in counted.status.used.items()}
        return replace(counted, status=replace(counted.status, used=used))

    def _usage_context(self, namespace: str) -> Any:
        objects = self._objects[namespace]
        return usage_context(objects, now=self._context.now, classes=self._classes)

    def charge_new(self, snapshot: Snapshot) -> dict[tuple[str, str], str]:
        """Charge for new claims and templates; return by kind and full name why one is refused."""
        refused: dict[tuple[str, str], str] = {}
        kept: tuple[Any, ...] = (*snapshot.templates, *snapshot.claims)
        alone = {pod.metadata.uid for pod in snapshot.pods if stands_for(pod)}
        for value in kept if self._quotas else ():
            owner = controller_of(value.metadata)
            if is_charged(value) and (owner is None or owner.uid not in alone):
                resource = CLAIMS if isinstance(value, ResourceClaim) else TEMPLATES
                reason = self.charge(resource, value)
                if reason:
                    name = f"{resource.plural}.{resource.group}"
                    refused[value.kind, full_name(value)] = (
                        f'{name} "{value.metadata.name}" is forbidden: {reason}'
                    )
        return refused

    @contextmanager
    def undone(self, namespace: str) -> Iterator[None]:
        """Take back what is charged in a namespace within the context."""
        quotas, objects = self._quotas.get(namespace), {}
        if quotas:
            objects = {name: len(found) for name, found in self._objects[namespace].items()}
        yield
        for name, number in objects.items():
            del self._objects[namespace][name][number:]
        if quotas:
            self._quotas[namespace] = quotas

    def charge(self, resource: GroupResource, value: Any) -> str:
        """Charge the quotas of the object's namespace; return why it exceeds one, or ""."""
        namespace = value.metadata.namespace
        quotas = self._quotas.get(namespace)
        if not quotas:
            return ""
        evaluator = evaluator_for(resource, self._usage_context(namespace))
        if evaluator is None:
            return ""
        outcome = charged(quotas, evaluator, value)
        if isinstance(outcome, ClaimRejection):
            return outcome.reason
        self._quotas[namespace] = outcome
        self._objects[namespace][resource].append(value)
        return ""


def is_charged(value: Any) -> bool:
    """Return whether admission charges for an object: it is new, and controllers have not seen it.

    A claim with devices and a pod with a node are there already, whether or not they have a uid.
    """
    if isinstance(value, ResourceClaim) and value.status.allocation is not None:
        return False
    if isinstance(value, Pod) and value.spec.node_name:
        return False
    return is_new(value)
