"""What a pod refers to: its node must be able to read that, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mooring.api.core import Pod
from mooring.api.core.pod import MIRROR_POD_ANNOTATION
from mooring.claims.references import claims_to_release

SECRETS, CONFIG_MAPS = "secrets", "configmaps"
CLAIMS, SERVICE_ACCOUNTS, PODS = "resourceclaims", "serviceaccounts", "pods"
VOLUME_CLAIMS = "persistentvolumeclaims"


class Tie(NamedTuple):
    """An object that a pod refers to, in its namespace."""

    resource: str
    name: str


# Where names stand: by the first field, so that only fields that are there are looked at.
Places = Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]

_IN_VOLUMES: Places = {
    "secret": ((SECRETS, ("secretName",)),),
    "azureFile": ((SECRETS, ("secretName",)),),
    "cephfs": ((SECRETS, ("secretRef", "name")),),
    "cinder": ((SECRETS, ("secretRef", "name")),),
    "flexVolume": ((SECRETS, ("secretRef", "name")),),
    "rbd": ((SECRETS, ("secretRef", "name")),),
    "scaleIO": ((SECRETS, ("secretRef", "name")),),
    "iscsi": ((SECRETS, ("secretRef", "name")),),
    "storageos": ((SECRETS, ("secretRef", "name")),),
    "csi": ((SECRETS, ("nodePublishSecretRef", "name")),),
    "configMap": ((CONFIG_MAPS, ("name",)),),
    "persistentVolumeClaim": ((VOLUME_CLAIMS, ("claimName",)),),
}
_IN_PROJECTIONS: Places = {
    "secret": ((SECRETS, ("name",)),),
    "configMap": ((CONFIG_MAPS, ("name",)),),
}
_IN_ENVIRONMENTS: Places = {
    "secretRef": ((SECRETS, ("name",)),),
    "configMapRef": ((CONFIG_MAPS, ("name",)),),
    "valueFrom": (
        (SECRETS, ("secretKeyRef", "name")),
        (CONFIG_MAPS, ("configMapKeyRef", "name")),
    ),
}


def is_mirror(pod: Pod) -> bool:
    """Return whether a pod only shows what a node runs by itself."""
    return MIRROR_POD_ANNOTATION in pod.metadata.annotations


def ties_of(pod: Pod) -> frozenset[Tie]:
    """Return all that a pod refers to. A mirror pod gives its node nothing."""
    own = Tie(PODS, pod.metadata.name)
    if is_mirror(pod):
        return frozenset({own})
    return frozenset({own, *references_of(pod)})


def references_of(pod: Pod) -> Iterator[Tie]:
    """Yield the objects that a pod refers to, whoever made it."""
    spec = pod.spec
    if spec.service_account_name:
        yield Tie(SERVICE_ACCOUNTS, spec.service_account_name)
    for secret in spec.image_pull_secrets:
        if secret.name:
            yield Tie(SECRETS, secret.name)
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        for source in (*container.env_from, *container.env):
            yield from _named_in(source, _IN_ENVIRONMENTS)
    for volume in spec.volumes:
        yield from _named_in(volume, _IN_VOLUMES)
        for source in _list(_at(volume, ("projected", "sources"))):
            yield from _named_in(source, _IN_PROJECTIONS)
    for name in claims_to_release(pod):
        if name:
            yield Tie(CLAIMS, name)


def audiences_of(pod: Pod) -> set[str]:
    """Return whom the tokens in a pod's volumes are for; "" is the server itself."""
    found = set()
    for volume in pod.spec.volumes:
        for source in _list(_at(volume, ("projected", "sources"))):
            token = _at(source, ("serviceAccountToken",))
            if isinstance(token, dict):
                audience = token.get("audience", "")
                found.add(audience if isinstance(audience, str) else "")
    return found


def _named_in(tree: Any, places: Places) -> Iterator[Tie]:
    if not isinstance(tree, dict):
        return
    for field, value in tree.items():
        for resource, path in places.get(field, ()):
            name = _at(value, path)
            if isinstance(name, str) and name:
                yield Tie(resource, name)


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    """Return what stands at a path; None where the tree is of another shape."""
    for step in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(step)
    return tree


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
