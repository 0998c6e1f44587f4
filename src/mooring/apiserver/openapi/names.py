"""What components are called: the names that Kubernetes gives them, so that clients know them."""

from __future__ import annotations

from functools import cache

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

_MACHINERY = "io.k8s.apimachinery.pkg"
META = f"{_MACHINERY}.apis.meta.v1"
CORE = "io.k8s.api.core.v1"

QUANTITY = f"{_MACHINERY}.api.resource.Quantity"
TIME = f"{META}.Time"
MICRO_TIME = f"{META}.MicroTime"
FIELDS = f"{META}.FieldsV1"
RAW = f"{_MACHINERY}.runtime.RawExtension"
INT_OR_STRING = f"{_MACHINERY}.util.intstr.IntOrString"
LIST_META = f"{META}.ListMeta"
OBJECT_META = f"{META}.ObjectMeta"
DELETE_OPTIONS = f"{META}.DeleteOptions"
PRECONDITIONS = f"{META}.Preconditions"
PATCH = f"{META}.Patch"
STATUS = f"{META}.Status"
STATUS_DETAILS = f"{META}.StatusDetails"
STATUS_CAUSE = f"{META}.StatusCause"

# The structs that a group declares itself; all others are those of core.
_OWN = {
    "apps": (apps.APPS,),
    "batch": (batch.BATCH,),
    "coordination.k8s.io": (others.COORDINATION,),
    "events.k8s.io": (others.EVENTS,),
    "node.k8s.io": (others.NODE,),
    "rbac.authorization.k8s.io": (others.RBAC,),
    "resource.k8s.io": (resource.V1, resource.V1BETA1, resource.V1ALPHA3),
    "scheduling.k8s.io": (
        scheduling.V1,
        scheduling.V1BETA1,
        scheduling.V1ALPHA2,
        scheduling.V1ALPHA3,
    ),
}


@cache
def _tables() -> dict[str, Table]:
    return {group: Table(*texts) for group, texts in _OWN.items()}


@cache
def _meta_table() -> Table:
    return Table(meta.META)


@cache
def _core_table() -> Table:
    return Table(volumes.VOLUMES, pods.PODS, core.CORE)


def package_of(group: str, version: str) -> str:
    """Return where Kubernetes keeps the structs of a version of a group."""
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}"


def component_name(group: str, version: str, struct: str) -> str:
    """Return the name of a struct that a version of a group uses."""
    if struct in _meta_table():
        return f"{META}.{struct}"
    if struct in _core_table() and not (group and struct in _tables()[group]):
        return f"{CORE}.{struct}"
    if group == "batch" and struct not in _tables()[group]:
        group, version = "scheduling.k8s.io", "v1alpha3"  # what jobs say of scheduling
    return f"{package_of(group, version)}.{struct}"


def reference(component: str) -> dict[str, str]:
    """Return what stands where a component is meant."""
    return {"$ref": f"#/components/schemas/{component}"}
