"""What the server writes into pods that say nothing of it: account, priority, token …"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mooring.api.core import Container, Pod, PodSpec, ServiceAccount, Toleration

DEFAULT_ACCOUNT = "default"
STAYS_S = 300  # how long a pod stays on a node that does not answer

TOKEN_PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  # a folder
TOKEN_VOLUME = "kube-api-access-"  # noqa: S105  # how its name begins
TOKEN_S = 3607
READABLE = 0o644

_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def with_defaults(pod: Pod, suffix: str, account: ServiceAccount | None = None) -> Pod:
    """Return a pod with its account, its patience with lost nodes, its priority and its token."""
    spec = pod.spec
    name = spec.service_account_name or spec.service_account or DEFAULT_ACCOUNT
    account = account or ServiceAccount()
    changed = replace(
        spec,
        service_account_name=name,
        service_account=name,
        image_pull_secrets=spec.image_pull_secrets or account.image_pull_secrets,
        tolerations=(*spec.tolerations, *_patience(spec.tolerations)),
        priority=0 if spec.priority is None else spec.priority,
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
    )
    wants_token = spec.automount_service_account_token
    if wants_token is None:
        wants_token = account.automount_service_account_token is not False
    return replace(pod, spec=_with_token(changed, suffix) if wants_token else changed)


def _with_token(spec: PodSpec, suffix: str) -> PodSpec:
    """Return a pod with a volume that holds its token, mounted where nothing else is."""
    names = [volume.get("name", "") for volume in spec.volumes if isinstance(volume, dict)]
    given = next((name for name in names if name.startswith(TOKEN_VOLUME)), None)
    name = given or f"{TOKEN_VOLUME}{suffix}"
    containers = tuple(_mounted(c, name) for c in spec.containers)
    starting = tuple(_mounted(c, name) for c in spec.init_containers)
    is_used = (containers, starting) != (spec.containers, spec.init_containers)
    volumes = (*spec.volumes, _token_volume(name)) if is_used and not given else spec.volumes
    return replace(spec, volumes=volumes, containers=containers, init_containers=starting)


def _patience(given: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=STAYS_S)
        for key in _LOST
        if not any(_covers(toleration, key) for toleration in given)
    )


def _covers(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")


def _mounted(container: Container, name: str) -> Container:
    mounts = container.volume_mounts
    taken = {mount.get("mountPath") for mount in mounts if isinstance(mount, dict)}
    if TOKEN_PLACE in taken:
        return container
    mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PLACE}
    return replace(container, volume_mounts=(*mounts, mount))


def _token_volume(name: str) -> dict[str, Any]:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_S, "path": "token"}},
        {"configMap": authority},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": READABLE}}
