"""Where pods are, and with which devices, once everything is planned."""

from __future__ import annotations

from msgspec import Struct

from mooring.api.core import Pod
from mooring.claims import claims_to_release
from mooring.controllers.podstates import is_active
from mooring.insight.concerns import full_name
from mooring.insight.plan.planner import Plan
from mooring.insight.snapshot.snapshot import Snapshot


class Standing(Struct, frozen=True, omit_defaults=True):
    """Where a pod is, or why it is nowhere."""

    node: str | None = None
    devices: tuple[str, ...] = ()  # driver/pool/device
    message: str = ""


def standings_of(plan: Plan) -> dict[str, Standing]:
    """Return where the pods of a plan are, by their full names, in order."""
    after = plan.after
    devices = _Devices(after)
    messages = {full_name(each.pod): each.message or each.reason for each in plan.pending}
    return {
        name: Standing(
            pod.spec.node_name or None,
            devices.of(pod) if pod.spec.node_name else (),
            messages.get(name, ""),
        )
        for pod in after.pods
        if is_active(pod) and (name := full_name(pod))
    }


class _Devices:
    """Knows the devices of claims."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_claim: dict[tuple[str, str], list[str]] = {}
        for claim in snapshot.claims:
            allocation = claim.status.allocation
            if allocation is not None:
                self._by_claim[claim.metadata.namespace, claim.metadata.name] = [
                    f"{each.driver}/{each.pool}/{each.device}"
                    for each in allocation.devices.results
                ]

    def of(self, pod: Pod) -> tuple[str, ...]:
        """Return the devices of a pod, each once."""
        keys = ((pod.metadata.namespace, name) for name in claims_to_release(pod))
        return tuple(sorted({d for key in keys for d in self._by_claim.get(key, ())}))
