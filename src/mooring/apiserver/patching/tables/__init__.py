"""The fields of every kind, from the Go types of Kubernetes 1.37: facts, one table a group."""

from __future__ import annotations

from functools import cache

from mooring.apiserver.patching.shapes import Shape
from mooring.apiserver.patching.tables import (
    apps,
    batch,
    core,
    meta,
    others,
    pods,
    resource,
    scheduling,
    volumes,
)
from mooring.apiserver.patching.tabletext import Table

_CORE = (meta.META, volumes.VOLUMES, pods.PODS, core.CORE)
_RESOURCE = (*_CORE, resource.V1)
_SCHEDULING = (meta.META, scheduling.V1, scheduling.V1BETA1)

# Kubernetes has v1alpha3's kinds in v1alpha3 only; we serve one of them in v1beta2, too.
_TEXTS: dict[str, tuple[str, ...]] = {
    "v1": _CORE,
    "apps/v1": (*_CORE, apps.APPS),
    "authentication.k8s.io/v1": (meta.META, others.AUTHENTICATION),
    "authorization.k8s.io/v1": (meta.META, others.AUTHORIZATION),
    "autoscaling/v1": (meta.META, others.AUTOSCALING),
    "batch/v1": (*_SCHEDULING, scheduling.V1ALPHA3, *_CORE, batch.BATCH),
    "coordination.k8s.io/v1": (meta.META, others.COORDINATION),
    "events.k8s.io/v1": (*_CORE, others.EVENTS),
    "node.k8s.io/v1": (*_CORE, others.NODE),
    "rbac.authorization.k8s.io/v1": (meta.META, others.RBAC),
    "resource.k8s.io/v1": _RESOURCE,
    "resource.k8s.io/v1beta2": (*_RESOURCE, resource.V1ALPHA3),
    "resource.k8s.io/v1beta1": (*_RESOURCE, resource.V1BETA1),
    "resource.k8s.io/v1alpha3": (*_RESOURCE, resource.V1ALPHA3),
    "scheduling.k8s.io/v1": (meta.META, scheduling.V1),
    "scheduling.k8s.io/v1beta1": _SCHEDULING,
    "scheduling.k8s.io/v1alpha3": (*_SCHEDULING, scheduling.V1ALPHA3),
    "scheduling.k8s.io/v1alpha2": (*_SCHEDULING, scheduling.V1ALPHA2),
}


@cache
def table(api_version: str) -> Table:
    """Return the structs of one version of a group."""
    return Table(*_TEXTS[api_version])


def find_shape(api_version: str, kind: str) -> Shape | None:
    """Return the shape of a kind, or None if it has none in this version."""
    if api_version not in _TEXTS or kind not in table(api_version):
        return None
    return table(api_version).shape(kind)
