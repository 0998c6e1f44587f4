"""Rules for pod updates: images, gates, tolerations and little else may change."""

from __future__ import annotations

import difflib

from msgspec.structs import replace

from moorage.api.core.placement import Affinity, NodeAffinity, NodeSelectorTerm
from moorage.api.core.pod import Container, Pod, PodSchedulingGate, PodSpec
from moorage.api.field_path import Path
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, forbidden, invalid, required
from moorage.validation.go_layout import internal_lines
from moorage.validation.metadata import validate_metadata_update
from moorage.validation.pod.annotations import validate_annotations_update
from moorage.validation.pod.containers import BLANKS
from moorage.validation.pod.spec import ACTIVE_DEADLINE_MAX, SPEC, validate_pod
from moorage.validation.pod.tolerations import validate_added_tolerations

CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_pod_update(new: Pod, old: Pod) -> ErrorList:
    """Validate an updated pod, and that only fields that may change did."""
    found = validate_metadata_update(new.metadata, old.metadata)
    found += validate_pod(new, old.metadata.annotations)
    found += validate_annotations_update(new, old)
    for name, containers, old_containers in (
        ("containers", new.spec.containers, old.spec.containers),
        ("initContainers", new.spec.init_containers, old.spec.init_containers),
    ):
        if len(containers) != len(old_containers):
            detail = "pod updates may not add or remove containers"
            return [*found, forbidden(SPEC.child(name), detail)]
        found += _validate_images(containers, SPEC.child(name))
    deadline_errors = _validate_deadline(new.spec, old.spec, SPEC.child("activeDeadlineSeconds"))
    found += deadline_errors
    if deadline_errors and new.spec.active_deadline_seconds is not None:
        return found
    found += validate_added_tolerations(new.spec, old.spec, SPEC.child("tolerations"))
    found += _validate_removed_gates(new.spec, old.spec, SPEC.child("schedulingGates"))
    return found + _validate_rest(new.spec, old.spec)


def _validate_images(containers: tuple[Container, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    for position, container in enumerate(containers):
        place = path.index(position).child("image")
        if not container.image:
            found.append(required(place))
        if container.image != container.image.strip():
            found.append(invalid(place, container.image, BLANKS))
    return found


def _validate_deadline(new: PodSpec, old: PodSpec, path: Path) -> ErrorList:
    """Validate that a deadline is only set or shortened."""
    deadline, old_deadline = new.active_deadline_seconds, old.active_deadline_seconds
    if deadline is None:
        if old_deadline is None:
            return []
        return [invalid(path, None, "must not update from a positive integer to nil value")]
    if not 0 <= deadline <= ACTIVE_DEADLINE_MAX:
        detail = f"must be between 0 and {ACTIVE_DEADLINE_MAX}, inclusive"
        return [invalid(path, deadline, detail)]
    if old_deadline is not None and old_deadline < deadline:
        return [invalid(path, deadline, "must be less than or equal to previous value")]
    return []


def _validate_removed_gates(new: PodSpec, old: PodSpec, path: Path) -> ErrorList:
    return [
        forbidden(
            path.index(position).child("name"),
            f"only deletion is allowed, but found new scheduling gate '{gate.name}'",
        )
        for position, gate in enumerate(new.scheduling_gates)
        if not _is_known(gate, old)
    ]


def _is_known(gate: PodSchedulingGate, spec: PodSpec) -> bool:
    return any(gate.name == known.name for known in spec.scheduling_gates)


# --- everything else ----------------------------------------------------------------------


def _validate_rest(new: PodSpec, old: PodSpec) -> ErrorList:
    """Validate that no other field changed; the placement of a gated pod may be narrowed."""
    if semantic_equal(new, old):
        return []
    found: ErrorList = []
    changed = _with_old_values(new, old)
    if old.scheduling_gates:
        found += _validate_narrowed_selector(changed, old, SPEC.child("nodeSelector"))
        found += _validate_narrowed_affinity(changed, old, SPEC.child("affinity", "nodeAffinity"))
        changed = replace(
            changed,
            node_selector=old.node_selector,
            affinity=_with_old_node_affinity(changed.affinity, old.affinity),
        )
    if semantic_equal(changed, old):
        return found
    detail = f"pod updates may not change fields other than {CHANGEABLE}\n{_diff(old, changed)}"
    return [*found, forbidden(SPEC, detail)]


def _with_old_values(new: PodSpec, old: PodSpec) -> PodSpec:
    """Return the new spec with the old values of the fields that may change."""
    grace_period = new.termination_grace_period_seconds
    old_grace_period = old.termination_grace_period_seconds
    if old_grace_period is not None and old_grace_period < 0 and grace_period == 1:
        grace_period = old_grace_period
    return replace(
        new,
        containers=_with_old_images(new.containers, old.containers),
        init_containers=_with_old_images(new.init_containers, old.init_containers),
        active_deadline_seconds=old.active_deadline_seconds,
        scheduling_gates=old.scheduling_gates,
        tolerations=old.tolerations,
        termination_grace_period_seconds=grace_period,
    )


def _with_old_images(
    containers: tuple[Container, ...], old_containers: tuple[Container, ...]
) -> tuple[Container, ...]:
    return tuple(
        replace(container, image=old.image)
        for container, old in zip(containers, old_containers, strict=True)
    )


def _validate_narrowed_selector(new: PodSpec, old: PodSpec, path: Path) -> ErrorList:
    if old.node_selector.items() <= new.node_selector.items():
        return []
    detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid(path, dict(sorted(new.node_selector.items())), detail)]


def _validate_narrowed_affinity(new: PodSpec, old: PodSpec, path: Path) -> ErrorList:
    terms, old_terms = _required_terms(new), _required_terms(old)
    path = path.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    if not old_terms:
        return []
    if len(terms) != len(old_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path, terms, detail)]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(path.index(position), term, detail)
        for position, (term, old_term) in enumerate(zip(terms, old_terms, strict=True))
        if not _has_only_additions(term, old_term)
    ]


def _required_terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...]:
    affinity = _node_affinity(spec.affinity)
    if affinity is None or affinity.required_during_scheduling_ignored_during_execution is None:
        return ()
    return affinity.required_during_scheduling_ignored_during_execution.node_selector_terms or ()


def _node_affinity(affinity: Affinity | None) -> NodeAffinity | None:
    return None if affinity is None else affinity.node_affinity


def _has_only_additions(term: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    if not old.match_expressions and not old.match_fields:
        # The empty term matches no node; anything added would make it match more.
        return not term.match_expressions and not term.match_fields
    return (
        term.match_expressions[: len(old.match_expressions)] == old.match_expressions
        and term.match_fields[: len(old.match_fields)] == old.match_fields
    )


def _with_old_node_affinity(affinity: Affinity | None, old: Affinity | None) -> Affinity | None:
    old_node_affinity = _node_affinity(old)
    if _node_affinity(affinity) == old_node_affinity:
        return affinity
    if affinity is None:
        return Affinity(node_affinity=old_node_affinity)
    has_others = affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    if old is None and not has_others:
        return None
    return replace(affinity, node_affinity=old_node_affinity)


def _diff(old: PodSpec, new: PodSpec) -> str:
    """Return the diff of the specs, with three lines of context."""
    header_lines = 2
    lines = difflib.unified_diff(internal_lines(old), internal_lines(new), n=3)
    return "".join(list(lines)[header_lines:])
