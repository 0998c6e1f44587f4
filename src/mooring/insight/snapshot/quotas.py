"""Quotas of a snapshot: whether new pods and claims still fit, as admission would charge them.

Usage is what the quota's status says. A quota without a status is new: its usage is counted from
the objects of its namespace, as the quota controller does. Where spec and status differ, the spec
was changed since: the controller will write its limits into the status, so they count.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from msgspec.structs import replace

from mooring.api.core.namespace import ResourceQuota
from mooring.claims import DeviceClassIndex
from mooring.claims.pod_claims import ClaimRejection
from mooring.claims.quotas import (
    CLAIMS,
    PODS,
    GroupResource,
    charged,
    evaluator_for,
    recalculated,
    usage_context,
)
from mooring.insight.snapshot.snapshot import Snapshot, is_new
from mooring.validation.strategy import Context


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
            space: {PODS: [], CLAIMS: []} for space in spaces
        }
        for pod in snapshot.pods:
            if pod.metadata.namespace in spaces and not is_new(pod):
                self._objects[pod.metadata.namespace][PODS].append(pod)
        for claim in snapshot.claims:
            if claim.metadata.namespace in spaces:
                self._objects[claim.metadata.namespace][CLAIMS].append(claim)
        for quota in snapshot.quotas:
            self._quotas[quota.metadata.namespace].append(self._with_usage(quota))

    def _with_usage(self, quota: ResourceQuota) -> ResourceQuota:
        hard, status = quota.spec.hard, quota.status
        if status.hard and (not hard or status.hard == hard):
            return quota
        objects = self._objects[quota.metadata.namespace]
        counted = recalculated(quota, objects, self._usage_context(quota.metadata.namespace))
        known = {name: amount for name, amount in status.used.items() if name in hard}
        used = {**counted.status.used, **known}
        return replace(counted, status=replace(counted.status, used=used))

    def _usage_context(self, namespace: str) -> Any:
        objects = self._objects[namespace]
        return usage_context(objects, now=self._context.now, classes=self._classes)

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
