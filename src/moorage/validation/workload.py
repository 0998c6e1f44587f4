"""The strategy of Workloads: the templates stay, only their counts may change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from msgspec.structs import replace

from moorage.api.codec import to_tree
from moorage.api.field_path import Path, root
from moorage.api.gates import Gates
from moorage.api.scheduling.v1beta1 import (
    CompositePodGroupTemplate,
    PodGroupTemplate,
    Workload,
    WorkloadSpec,
)
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, duplicate, forbidden, invalid, too_many
from moorage.validation.field_rules import declared_short_name, declared_union, duplicates, each
from moorage.validation.pod_group_fields import (
    GATED_COMPOSITE,
    GATED_PREEMPTION,
    GATED_TEMPLATE_FIELDS,
    PRIORITY,
    SetOnce,
    name_of,
    validate_claims,
    validate_constraints,
    validate_controller,
    validate_mode,
    validate_policy,
    validate_set_once,
    without_disabled,
)
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")

TEMPLATES_MAX = 8
DEPTH_MAX = 4

Template = TypeVar("Template", PodGroupTemplate, CompositePodGroupTemplate)
AnyTemplate = PodGroupTemplate | CompositePodGroupTemplate


class WorkloadStrategy(ObjectStrategy[Workload]):
    """The strategy of Workloads."""

    allow_unconditional_update = False

    def drop_disabled_fields(
        self, new: Workload, old: Workload | None, context: Context
    ) -> Workload:
        """Drop fields of disabled features that the old workload does not use."""
        old_spec = None if old is None else old.spec
        return replace(new, spec=_drop_disabled(new.spec, old_spec, context.gates))

    def validate(self, new: Workload, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        found = self.validate_metadata(new) + _validate_tree(new.spec)
        return found + _validate_spec(new.spec, None)

    def validate_changes(self, new: Workload, old: Workload) -> ErrorList:
        """Validate the templates, and that only fields that may change did."""
        return _validate_tree(new.spec) + _validate_spec(new.spec, old.spec)


# --- rules of the types -------------------------------------------------------------------


def _validate_spec(spec: WorkloadSpec, old: WorkloadSpec | None) -> ErrorList:
    found: ErrorList = []
    if old is None or _members(spec) != _members(old):
        found += declared_union(_members(spec), SPEC)
    found += validate_set_once(spec, old, {"controller_ref": SetOnce(validate_controller)}, SPEC)
    found += _validate_templates(
        spec.pod_group_templates or (),
        None if old is None else old.pod_group_templates or (),
        SPEC.child("podGroupTemplates"),
    )
    return found + _validate_templates(
        spec.composite_pod_group_templates,
        None if old is None else old.composite_pod_group_templates,
        SPEC.child("compositePodGroupTemplates"),
    )


def _members(spec: WorkloadSpec) -> dict[str, bool | None]:
    return {
        "podGroupTemplates": bool(spec.pod_group_templates) or None,
        "compositePodGroupTemplates": bool(spec.composite_pod_group_templates) or None,
    }


def _validate_templates(
    templates: tuple[Template, ...], old: tuple[Template, ...] | None, path: Path
) -> ErrorList:
    """Validate a list of templates: limited, with unique names, none added or removed."""
    if old is not None and semantic_equal(templates, old):
        return []
    found: ErrorList = []
    if len(templates) > TEMPLATES_MAX:
        found.append(too_many(path, len(templates), TEMPLATES_MAX, declared=True))
    before = {template.name: template for template in reversed(old or ())}
    if old is not None:
        found += _validate_same_names(templates, old, path)
    if found:
        return found
    found = duplicates(templates, name_of, path, declared=True)
    for position, template in enumerate(templates):
        old_template = before.get(template.name)
        if template != old_template:
            found += _validate_template(template, old_template, path.index(position))
    return found


def _validate_same_names(
    templates: tuple[Template, ...], old: tuple[Template, ...], path: Path
) -> ErrorList:
    kept = {template.name for template in templates}
    known = {template.name for template in old}
    added = [
        forbidden(path.index(position), "item may not be added", declared=True)
        for position, template in enumerate(templates)
        if template.name not in known
    ]
    removed = [
        forbidden(path, "item may not be removed", declared=True)
        for template in old
        if template.name not in kept
    ]
    return added + removed


def _validate_template(template: AnyTemplate, old: AnyTemplate | None, path: Path) -> ErrorList:
    policy_path = path.child("schedulingPolicy")
    found: ErrorList = []
    if old is None:
        found += declared_short_name(template.name, path.child("name"))
    old_policy = None if old is None else old.scheduling_policy
    found += validate_policy(template.scheduling_policy, old_policy, policy_path)
    found += validate_set_once(
        template, old, {"scheduling_constraints": SetOnce(validate_constraints)}, path
    )
    if isinstance(template, PodGroupTemplate):
        old_claims = old.resource_claims if isinstance(old, PodGroupTemplate) else None
        found += validate_claims(template.resource_claims, old_claims, path.child("resourceClaims"))
    found += validate_set_once(
        template, old, {"disruption_mode": SetOnce(validate_mode), **PRIORITY}, path
    )
    if isinstance(template, CompositePodGroupTemplate):
        found += _validate_children(
            template, old if isinstance(old, CompositePodGroupTemplate) else None, path
        )
    return found


def _validate_children(
    template: CompositePodGroupTemplate, old: CompositePodGroupTemplate | None, path: Path
) -> ErrorList:
    return _validate_templates(
        template.pod_group_templates,
        None if old is None else old.pod_group_templates,
        path.child("podGroupTemplates"),
    ) + _validate_templates(
        template.children,
        None if old is None else old.children,
        path.child("compositePodGroupTemplates"),
    )


# --- rules of the whole tree --------------------------------------------------------------


def _validate_tree(spec: WorkloadSpec) -> ErrorList:
    composites = spec.composite_pod_group_templates
    path = SPEC.child("compositePodGroupTemplates")
    names = {template.name for template in spec.pod_group_templates or ()}
    found = _validate_names(composites, path, names)
    for position, template in enumerate(composites):
        if _depth(template) >= DEPTH_MAX:
            detail = f"maximum template hierarchy depth is {DEPTH_MAX}"
            shown = template.composite_pod_group_templates
            found.append(invalid(path.index(position), shown, detail))
    found += _validate_one_priority(spec)
    return found + each(composites, _validate_has_children, path)


def _validate_names(
    templates: tuple[CompositePodGroupTemplate, ...], path: Path, names: set[str]
) -> ErrorList:
    """Validate that no name occurs in two lists; declared rules cover a single list."""
    found: ErrorList = []
    for position, template in enumerate(templates):
        if template.name in names:
            found.append(duplicate(path.index(position).child("name"), template.name))
    names |= {template.name for template in templates}
    for position, template in enumerate(templates):
        place = path.index(position)
        for number, child in enumerate(template.pod_group_templates):
            if child.name in names:
                child_path = place.child("podGroupTemplates").index(number)
                found.append(duplicate(child_path.child("name"), child.name))
        names |= {child.name for child in template.pod_group_templates}
        nested_path = place.child("compositePodGroupTemplates")
        found += _validate_names(template.children, nested_path, names)
    return found


def _depth(template: CompositePodGroupTemplate) -> int:
    return 1 + max(map(_depth, template.children), default=0)


def _validate_one_priority(spec: WorkloadSpec) -> ErrorList:
    """Validate that all templates have the same priority."""
    groups = {(t.priority_class_name, t.priority) for t in spec.pod_group_templates or ()}
    if len(groups) > 1:
        return [invalid(SPEC, None, "detected multiple priority configurations")]
    everywhere = groups | {
        (t.priority_class_name, t.priority) for t in _below(spec.composite_pod_group_templates)
    }
    if len(everywhere) > 1:
        detail = (
            "all priority and priorityClassName values must be identical, detected multiple values"
        )
        return [invalid(SPEC, None, detail)]
    return []


def _below(templates: tuple[CompositePodGroupTemplate, ...]) -> Iterator[AnyTemplate]:
    for template in templates:
        yield template
        yield from _below(template.children)
        yield from template.pod_group_templates


def _validate_has_children(template: CompositePodGroupTemplate, path: Path) -> ErrorList:
    found: ErrorList = []
    if not template.pod_group_templates and not template.composite_pod_group_templates:
        detail = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
        found.append(invalid(path, template.name, detail))
    nested_path = path.child("compositePodGroupTemplates")
    return found + each(template.children, _validate_has_children, nested_path)


def _drop_disabled(new: WorkloadSpec, old: WorkloadSpec | None, gates: Gates) -> WorkloadSpec:
    """Return the spec of a workload without fields of disabled features not in use."""
    old = old or WorkloadSpec()
    new = without_disabled(new, old, GATED_COMPOSITE, gates)
    templates = new.pod_group_templates
    if templates is not None:
        templates = _drop_from_templates(templates, old.pod_group_templates or (), gates)
    composites = _drop_from_composites(
        new.composite_pod_group_templates, old.composite_pod_group_templates, gates
    )
    return replace(new, pod_group_templates=templates, composite_pod_group_templates=composites)


def _drop_from_templates(
    templates: tuple[PodGroupTemplate, ...], old: tuple[PodGroupTemplate, ...], gates: Gates
) -> tuple[PodGroupTemplate, ...]:
    """Return the templates; each is compared with the one at the same index."""
    before = (*old, *(PodGroupTemplate() for _ in templates))
    return tuple(
        without_disabled(template, was, GATED_TEMPLATE_FIELDS, gates)
        for template, was in zip(templates, before, strict=False)
    )


def _drop_from_composites(
    templates: tuple[CompositePodGroupTemplate, ...],
    old: tuple[CompositePodGroupTemplate, ...],
    gates: Gates,
) -> tuple[CompositePodGroupTemplate, ...]:
    """Return the templates; each is compared with the one of the same name."""
    before = {template.name: template for template in old}
    return tuple(
        _drop_below(template, before.get(template.name, CompositePodGroupTemplate()), gates)
        for template in templates
    )


def _drop_below(
    template: CompositePodGroupTemplate, old: CompositePodGroupTemplate, gates: Gates
) -> CompositePodGroupTemplate:
    template = without_disabled(template, old, {**GATED_PREEMPTION, **GATED_COMPOSITE}, gates)
    groups = _drop_from_templates(template.pod_group_templates, old.pod_group_templates, gates)
    template = replace(template, pod_group_templates=groups)
    children = _drop_from_composites(template.children, old.children, gates)
    if children == template.children:  # Their JSON stays as written.
        return template
    return replace(template, composite_pod_group_templates=tuple(map(to_tree, children)))
