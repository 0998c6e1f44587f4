"""What groups and workloads may not use while its feature is off, unless they did so before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.codec import to_tree
from mooring.api.gates import Gate, Gates
from mooring.api.scheduling.v1beta1 import (
    CompositePodGroup,
    CompositePodGroupTemplate,
    PodGroup,
    PodGroupTemplate,
    WorkloadSpec,
)

S = TypeVar("S", bound=Struct)
Fields = Mapping[str, tuple[Gate, Any]]  # of a struct: the gate of a field, and the field unset

_PREEMPTION: Fields = {"preemption_policy": (Gate.POD_GROUP_PREEMPTION_POLICY, None)}
_TEMPLATE: Fields = {
    "scheduling_constraints": (Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING, None),
    "resource_claims": (Gate.DRA_WORKLOAD_RESOURCE_CLAIMS, ()),
    **_PREEMPTION,
}
_GROUP: Fields = {
    **_TEMPLATE,
    "parent_composite_pod_group_name": (Gate.COMPOSITE_POD_GROUP, None),
}
_COMPOSITE: Fields = {"composite_pod_group_templates": (Gate.COMPOSITE_POD_GROUP, ())}


def drop_from_group(new: PodGroup, old: PodGroup | None, gates: Gates) -> PodGroup:
    """Return the group without fields of disabled features that the old one does not use."""
    old_spec = None if old is None else old.spec
    return replace(new, spec=_without_disabled(new.spec, old_spec, _GROUP, gates))


def drop_from_composite(
    new: CompositePodGroup, old: CompositePodGroup | None, gates: Gates
) -> CompositePodGroup:
    """Return the composite group without fields of disabled features not in use."""
    old_spec = None if old is None else old.spec
    return replace(new, spec=_without_disabled(new.spec, old_spec, _PREEMPTION, gates))


def drop_from_workload(new: WorkloadSpec, old: WorkloadSpec | None, gates: Gates) -> WorkloadSpec:
    """Return the spec of a workload without fields of disabled features not in use."""
    old = old or WorkloadSpec()
    new = _without_disabled(new, old, _COMPOSITE, gates)
    templates = new.pod_group_templates
    if templates is not None:
        templates = _drop_from_templates(templates, old.pod_group_templates or (), gates)
    composites = _drop_from_composites(
        new.composite_pod_group_templates, old.composite_pod_group_templates, gates
    )
    return replace(new, pod_group_templates=templates, composite_pod_group_templates=composites)


def _without_disabled(new: S, old: Struct | None, fields: Fields, gates: Gates) -> S:
    changes = {
        name: unset
        for name, (gate, unset) in fields.items()
        if not gates.enabled(gate) and (old is None or getattr(old, name) == unset)
    }
    return replace(new, **changes)


def _drop_from_templates(
    templates: tuple[PodGroupTemplate, ...], old: tuple[PodGroupTemplate, ...], gates: Gates
) -> tuple[PodGroupTemplate, ...]:
    """Return the templates; each is compared with the one that was at its place."""
    before = (*old, *(PodGroupTemplate() for _ in templates))
    return tuple(
        _without_disabled(template, was, _TEMPLATE, gates)
        for template, was in zip(templates, before, strict=False)
    )


def _drop_from_composites(
    templates: tuple[CompositePodGroupTemplate, ...],
    old: tuple[CompositePodGroupTemplate, ...],
    gates: Gates,
) -> tuple[CompositePodGroupTemplate, ...]:
    """Return the templates; each is compared with the one that had its name."""
    before = {template.name: template for template in old}
    return tuple(
        _drop_below(template, before.get(template.name, CompositePodGroupTemplate()), gates)
        for template in templates
    )


def _drop_below(
    template: CompositePodGroupTemplate, old: CompositePodGroupTemplate, gates: Gates
) -> CompositePodGroupTemplate:
    template = _without_disabled(template, old, {**_PREEMPTION, **_COMPOSITE}, gates)
    groups = _drop_from_templates(template.pod_group_templates, old.pod_group_templates, gates)
    template = replace(template, pod_group_templates=groups)
    children = _drop_from_composites(template.children, old.children, gates)
    if children == template.children:  # Their JSON stays as it was written.
        return template
    return replace(template, composite_pod_group_templates=tuple(map(to_tree, children)))
