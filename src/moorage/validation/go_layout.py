"""Objects as Kubernetes shows them in errors: with the fields of its internal Go types.

All fields of a type are shown, by their Go names in the order of Go, null where they are absent.
The schema (`moorage.api.schema`) has names and order. Types of meta/v1 are the same internally and
are shown as JSON has them; so are rare volume sources, whose Go names are not in the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from moorage.api.codec import to_tree
from moorage.api.core.pod import PodSpec
from moorage.api.raw_json import go_json
from moorage.api.resource.v1 import ResourceClaimTemplateSpec
from moorage.api.schema import Field, api_type

Json = Any

_ZEROS: dict[str, Json] = {
    "string": "",
    "bytes": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "quantity": "0",
}

# Volume sources in a pod whose Go types have names that the schema lacks.
_RARE_VOLUMES = (
    "AWSElasticBlockStore", "AzureDisk", "AzureFile", "CephFS", "Cinder",
    "Ephemeral", "FC", "Flex", "Flocker", "GCEPersistentDisk", "GitRepo",
    "Glusterfs", "ISCSI", "NFS", "PhotonPersistentDisk", "Portworx", "Quobyte",
    "RBD", "ScaleIO", "StorageOS", "VsphereVirtualDisk",
)  # fmt: skip
_TYPE = ("APIVersion", "ApiVersion", "Kind")  # which objects of one type do not repeat
_AS_WRITTEN = frozenset(f"core/v1.{name}VolumeSource" for name in _RARE_VOLUMES)


def internal_lines(spec: PodSpec) -> list[str]:
    """Return the lines of a pod's spec in Kubernetes' internal form."""
    text = go_json(_struct(to_tree(spec), "core/v1.PodSpec"), indent=1)
    return [f"{line}\n" for line in text.split("\n")]


def internal_template(spec: ResourceClaimTemplateSpec) -> dict[str, Any]:
    """Return the spec of a claim template in Kubernetes' internal form."""
    return _struct(to_tree(spec), "resource/v1.ResourceClaimTemplateSpec")


def internal_form(tree: Mapping[str, Json], name: str) -> dict[str, Json]:
    """Return an object in Kubernetes' internal form, by the name of its type.

    A name without group is one of core/v1.
    """
    return _struct(tree, name if "." in name else f"core/v1.{name}")


def internal_policy(policy: Json, name: str) -> Json:
    """Return a policy of a job in Kubernetes' internal form; anything else as it is."""
    return internal_form(policy, f"batch/v1.{name}") if isinstance(policy, dict) else policy


def _struct(tree: Mapping[str, Json], type_name: str) -> dict[str, Json]:
    shown: dict[str, Json] = {}
    is_object = False
    for go_name, field in _layout(type_name):
        if field.type == "meta/v1.ObjectMeta":  # It is embedded, and shown as JSON has it.
            shown |= tree.get(field.name) or {}
            is_object = True
        else:
            shown[go_name] = _shown_field(tree.get(field.name), field)
    if is_object:
        shown = {name: value for name, value in shown.items() if name not in _TYPE}
    return shown


@lru_cache(maxsize=512)
def _layout(type_name: str) -> tuple[tuple[str, Field], ...]:
    """Return the fields of a type with their Go names, in the order of Go."""
    return tuple(
        (field.markers.go_name or f"{field.name[0].upper()}{field.name[1:]}", field)
        for field in api_type(type_name).json_fields()
    )


def _shown_field(value: Json, field: Field) -> Json:
    can_be_null = field.is_list or field.is_map or field.is_pointer
    if value is None and can_be_null:
        return None
    if field.is_list:
        return [_shown(item, field.type) for item in value]
    if field.is_map:
        return {key: _shown(item, field.type) for key, item in sorted(value.items())}
    return _shown(value, field.type)


def _shown(value: Json, type_name: str) -> Json:
    if "." not in type_name:
        return _ZEROS.get(type_name) if value is None else value
    if type_name.startswith("meta/") or type_name in _AS_WRITTEN:
        return value
    return _struct(value or {}, type_name)
