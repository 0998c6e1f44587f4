"""Checks of the restricted level: pods drop what they do not need."""

from __future__ import annotations

from typing import Final

from moorage.validation.pod_security.baseline import seccomp_profile_1_19
from moorage.validation.pod_security.evaluated_pod import (
    EvaluatedContainer,
    EvaluatedPod,
    Tree,
    Violation,
    containers_text,
    plural,
    quoted,
    setters_text,
    texts_at,
    tree_at,
    trees_at,
)

ALL: Final = "ALL"
NET_BIND_SERVICE: Final = "NET_BIND_SERVICE"

ALLOWED_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
RESTRICTED_VOLUMES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def allow_privilege_escalation(pod: EvaluatedPod) -> Violation | None:
    """Demand that no process gains privileges that its parent lacks."""
    bad = pod.names(lambda c: c.security.get("allowPrivilegeEscalation") is not False)
    if not bad:
        return None
    detail = f"{containers_text(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def allow_privilege_escalation_1_25(pod: EvaluatedPod) -> Violation | None:
    """Demand the same, but of Windows pods."""
    return None if pod.is_windows else allow_privilege_escalation(pod)


def capabilities(pod: EvaluatedPod) -> Violation | None:
    """Demand that containers drop all capabilities; they may add that of low ports."""
    keeping = pod.names(lambda c: ALL not in texts_at(_capabilities(c), "drop"))
    adding, added = pod.found(
        lambda c: [each for each in texts_at(_capabilities(c), "add") if each != NET_BIND_SERVICE]
    )
    details = []
    if keeping:
        details.append(
            f'{containers_text(keeping)} must set securityContext.capabilities.drop=["ALL"]'
        )
    if adding:
        details.append(
            f"{containers_text(adding)} must not include {quoted(added)} in "
            "securityContext.capabilities.add"
        )
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _capabilities(container: EvaluatedContainer) -> Tree:
    return tree_at(container.security, "capabilities")


def capabilities_1_25(pod: EvaluatedPod) -> Violation | None:
    """Demand the same, but of Windows pods."""
    return None if pod.is_windows else capabilities(pod)


def volumes(pod: EvaluatedPod) -> Violation | None:
    """Forbid volumes but of objects of the cluster and of the pod itself."""
    bad = [
        volume
        for volume in trees_at(pod.spec, "volumes")
        if not any(volume.get(name) is not None for name in ALLOWED_VOLUMES)
    ]
    if not bad:
        return None
    names = [str(volume.get("name", "")) for volume in bad]
    shown = sorted(set(map(_volume_type, bad)))
    words = "restricted volume type"
    detail = (
        f"{plural(len(bad), 'volume', 'volumes')} {quoted(names)} "
        f"{plural(len(bad), 'uses', 'use')} {plural(len(shown), words, f'{words}s')} "
        f"{quoted(shown)}"
    )
    return Violation("restricted volume types", detail)


def _volume_type(volume: Tree) -> str:
    return next((name for name in RESTRICTED_VOLUMES if volume.get(name) is not None), "unknown")


def run_as_non_root(pod: EvaluatedPod) -> Violation | None:
    """Demand that containers do not run as root."""
    reason = "runAsNonRoot != true"
    pod_wide = pod.security.get("runAsNonRoot")
    bad = pod.names(lambda c: c.security.get("runAsNonRoot") is False)
    if pod_wide is False or bad:
        setters = setters_text(pod_wide is False, bad)
        return Violation(reason, f"{setters} must not set securityContext.runAsNonRoot=false")
    silent = pod.names(lambda c: c.security.get("runAsNonRoot") is None)
    if pod_wide is True or not silent:
        return None
    detail = f"pod or {containers_text(silent)} must set securityContext.runAsNonRoot=true"
    return Violation(reason, detail)


def run_as_non_root_1_35(pod: EvaluatedPod) -> Violation | None:
    """Demand the same, but in a user namespace, where root is nobody on the node."""
    return None if pod.has_user_namespace else run_as_non_root(pod)


def run_as_user(pod: EvaluatedPod) -> Violation | None:
    """Forbid the user id of root."""
    is_pod = _is_root(pod.security)
    bad = pod.names(lambda c: _is_root(c.security))
    if not is_pod and not bad:
        return None
    return Violation("runAsUser=0", f"{setters_text(is_pod, bad)} must not set runAsUser=0")


def _is_root(security: Tree) -> bool:
    user = security.get("runAsUser")
    return user is not None and user == 0


def run_as_user_1_35(pod: EvaluatedPod) -> Violation | None:
    """Forbid the same, but in a user namespace."""
    return None if pod.has_user_namespace else run_as_user(pod)


def seccomp_profile(pod: EvaluatedPod) -> Violation | None:
    """Demand a seccomp profile: the runtime's own, or one of the node."""
    if found := seccomp_profile_1_19(pod):
        return found
    if pod.security.get("seccompProfile") is not None:
        return None
    silent = pod.names(lambda c: c.security.get("seccompProfile") is None)
    if not silent:
        return None
    detail = (
        f"pod or {containers_text(silent)} must set securityContext.seccompProfile.type to "
        '"RuntimeDefault" or "Localhost"'
    )
    return Violation("seccompProfile", detail)


def seccomp_profile_1_25(pod: EvaluatedPod) -> Violation | None:
    """Demand the same, but of Windows pods."""
    return None if pod.is_windows else seccomp_profile(pod)
