"""Rules of node affinity, pod affinity and topology spread constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from moorage.api import names
from moorage.api.core.placement import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
)
from moorage.api.core.pod import PodSpec
from moorage.api.field_path import Path
from moorage.api.meta import LabelSelector, LabelSelectorRequirement
from moorage.validation.errors import ErrorList, duplicate, forbidden, invalid, required
from moorage.validation.field_rules import each, each_invalid, label_name
from moorage.validation.pod.field_rules import one_of
from moorage.validation.selectors import (
    validate_label_selector,
    validate_node_selector,
    validate_node_selector_term,
)

WEIGHT_MAX = 100

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NOT_POSITIVE = "must be greater than zero"


def validate_affinity(affinity: Affinity | None, path: Path) -> ErrorList:
    """Validate node affinity, pod affinity and pod anti-affinity."""
    if affinity is None:
        return []
    found: ErrorList = []
    if affinity.node_affinity is not None:
        found += _validate_node_affinity(affinity.node_affinity, path.child("nodeAffinity"))
    for name, terms in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if terms is not None:
            found += _validate_pod_affinity(terms, path.child(name))
    return found


def _validate_node_affinity(affinity: NodeAffinity, path: Path) -> ErrorList:
    found: ErrorList = []
    selector = affinity.required_during_scheduling_ignored_during_execution
    if selector is not None:
        found += validate_node_selector(selector, path.child(_REQUIRED))
    terms = affinity.preferred_during_scheduling_ignored_during_execution
    for position, term in enumerate(terms):
        place = path.child(_PREFERRED).index(position)
        found += _validate_weight(term.weight, place.child("weight"))
        preference = place.child("preference")
        found += validate_node_selector_term(term.preference, preference, any_values=True)
    return found


def _validate_pod_affinity(affinity: PodAffinity | PodAntiAffinity, path: Path) -> ErrorList:
    found: ErrorList = []
    terms = affinity.required_during_scheduling_ignored_during_execution
    for position, term in enumerate(terms):
        found += _validate_pod_term(term, path.child(_REQUIRED).index(position))
    weighted = affinity.preferred_during_scheduling_ignored_during_execution
    for position, preferred in enumerate(weighted):
        place = path.child(_PREFERRED).index(position)
        found += _validate_weight(preferred.weight, place.child("weight"))
        found += _validate_pod_term(preferred.pod_affinity_term, place.child("podAffinityTerm"))
    return found


def _validate_weight(weight: int, path: Path) -> ErrorList:
    if 1 <= weight <= WEIGHT_MAX:
        return []
    return [invalid(path, weight, f"must be in the range 1-{WEIGHT_MAX}")]


def _validate_pod_term(term: PodAffinityTerm, path: Path) -> ErrorList:
    found: ErrorList = []
    for name, selector in (
        ("labelSelector", term.label_selector),
        ("namespaceSelector", term.namespace_selector),
    ):
        if selector is not None:
            found += validate_label_selector(selector, path.child(name))
    for namespace in term.namespaces:
        place = path.child("namespace")
        found += each_invalid(place, namespace, names.dns1123_label(namespace))
    keys, other_keys = term.match_label_keys, term.mismatch_label_keys
    found += _validate_label_keys(keys, other_keys, term.label_selector, path)
    if not term.topology_key:
        found.append(required(path.child("topologyKey"), "can not be empty"))
    return found + label_name(term.topology_key, path.child("topologyKey"))


# --- labels whose values come from the pod ------------------------------------------------


def _validate_label_keys(
    keys: Sequence[str], other_keys: Sequence[str], selector: LabelSelector | None, path: Path
) -> ErrorList:
    """Validate matchLabelKeys and mismatchLabelKeys."""
    found = _validate_keys(keys, selector, path.child("matchLabelKeys"))
    found += _validate_keys(other_keys, selector, path.child("mismatchLabelKeys"))
    if selector is not None:
        found += _validate_merged_keys(keys, selector, path)
    detail = "exists in both matchLabelKeys and mismatchLabelKeys"
    others = frozenset(other_keys)
    return found + [
        invalid(path.child("matchLabelKeys").index(position), key, detail)
        for position, key in enumerate(keys)
        if key in others
    ]


def _validate_keys(keys: Sequence[str], selector: LabelSelector | None, path: Path) -> ErrorList:
    if not keys:
        return []
    if selector is None:
        return [forbidden(path, "must not be specified when labelSelector is not set")]
    return each(keys, label_name, path)


def _validate_merged_keys(keys: Sequence[str], selector: LabelSelector, path: Path) -> ErrorList:
    """Validate that the selector has no label twice.

    The server itself adds one expression for each key, so one is allowed.
    """
    found: ErrorList = []
    seen = set(selector.match_labels)
    positions = {key: position for position, key in enumerate(keys)}
    for expression in selector.match_expressions:
        key = expression.key
        if key in positions and key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            found.append(invalid(path.index(positions[key]), key, detail))
        seen.add(key)
    return found


# --- spreading ----------------------------------------------------------------------------


def validate_spreading(constraints: tuple[TopologySpreadConstraint, ...], path: Path) -> ErrorList:
    """Validate topology spread constraints."""
    found: ErrorList = []
    pairs = [(each.topology_key, each.when_unsatisfiable) for each in constraints]
    last = {pair: position for position, pair in enumerate(pairs)}
    for position, (constraint, pair) in enumerate(zip(constraints, pairs, strict=True)):
        place = path.index(position)
        found += _validate_constraint(constraint, place)
        if position < last[pair]:
            where = place.child("{topologyKey, whenUnsatisfiable}")
            found.append(duplicate(where, f"{{{pair[0]}, {pair[1]}}}"))
    return found


def _validate_constraint(constraint: TopologySpreadConstraint, path: Path) -> ErrorList:
    found: ErrorList = []
    if constraint.max_skew <= 0:
        found.append(invalid(path.child("maxSkew"), constraint.max_skew, _NOT_POSITIVE))
    if not constraint.topology_key:
        found.append(required(path.child("topologyKey"), "can not be empty"))
    action = constraint.when_unsatisfiable
    place = path.child("whenUnsatisfiable")
    found += one_of(action, ("DoNotSchedule", "ScheduleAnyway"), place)
    found += _validate_min_domains(constraint.min_domains, action, path.child("minDomains"))
    for name, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        found += one_of(policy, ("Honor", "Ignore"), path.child(name))
    keys, selector = constraint.match_label_keys, constraint.label_selector
    found += _validate_label_keys(keys, (), selector, path)
    if selector is not None:
        found += validate_label_selector(selector, path.child("labelSelector"))
    return found


def _validate_min_domains(number: int | None, action: str, path: Path) -> ErrorList:
    if number is None:
        return []
    found: ErrorList = []
    if number <= 0:
        found.append(invalid(path, number, _NOT_POSITIVE))
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        found.append(invalid(path, number, detail))
    return found


# --- matchLabelKeys and mismatchLabelKeys of a new pod ------------------------------------

Labels = Mapping[str, str]
A = TypeVar("A", PodAffinity, PodAntiAffinity)


def with_label_keys(spec: PodSpec, labels: Labels) -> PodSpec:
    """Return a spec whose selectors include the pod's own labels.

    The server adds them once, so that a later change of a label has no effect."""
    if spec.topology_spread_constraints:
        constraints = tuple(_spread(c, labels) for c in spec.topology_spread_constraints)
        spec = replace(spec, topology_spread_constraints=constraints)
    affinity = spec.affinity
    if affinity is None:
        return spec
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    changed = replace(
        affinity,
        pod_affinity=None if near is None else _affinity(near, labels),
        pod_anti_affinity=None if apart is None else _affinity(apart, labels),
    )
    return replace(spec, affinity=changed)


def _affinity(affinity: A, labels: Labels) -> A:
    terms = affinity.required_during_scheduling_ignored_during_execution
    weighted = affinity.preferred_during_scheduling_ignored_during_execution
    return replace(
        affinity,
        required_during_scheduling_ignored_during_execution=tuple(_term(t, labels) for t in terms),
        preferred_during_scheduling_ignored_during_execution=tuple(
            replace(w, pod_affinity_term=_term(w.pod_affinity_term, labels)) for w in weighted
        ),
    )


def _term(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    if term.label_selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    selector = _with_keys(term.label_selector, term.match_label_keys, "In", labels)
    selector = _with_keys(selector, term.mismatch_label_keys, "NotIn", labels)
    return replace(term, label_selector=selector)


def _spread(constraint: TopologySpreadConstraint, labels: Labels) -> TopologySpreadConstraint:
    selector, keys = constraint.label_selector, constraint.match_label_keys
    if selector is None or not keys:
        return constraint
    return replace(constraint, label_selector=_with_keys(selector, keys, "In", labels))


def _with_keys(
    selector: LabelSelector, keys: Sequence[str], operator: str, labels: Labels
) -> LabelSelector:
    added = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for key in keys
        if key in labels
    )
    return replace(selector, match_expressions=(*selector.match_expressions, *added))
