"""The names of controllers, as users choose them; some are several loops."""

from __future__ import annotations

_LOOPS_OF = {
    "resourceclaim-controller-groups": "resourceclaim-controller",
    "resourceclaim-controller-releases": "resourceclaim-controller",
}

CONTROLLERS: tuple[str, ...] = (
    "daemonset-controller",
    "deployment-controller",
    "device-taint-eviction-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "podgroup-protection-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "resourcepoolstatusrequest-controller",
    "root-ca-certificate-publisher-controller",
    "service-account-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)


def public_name(loop: str) -> str:
    """Return the name of the controller that a loop belongs to."""
    return _LOOPS_OF.get(loop, loop)
