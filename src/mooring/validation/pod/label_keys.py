"""What matchLabelKeys and mismatchLabelKeys of a new pod come to: expressions over its own labels.

The server adds them to the selectors once, so that a later change of a label changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from mooring.api.core.placement import (
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
)
from mooring.api.core.pod import PodSpec
from mooring.api.meta import LabelSelector, LabelSelectorRequirement

Labels = Mapping[str, str]
A = TypeVar("A", PodAffinity, PodAntiAffinity)


def with_label_keys(spec: PodSpec, labels: Labels) -> PodSpec:
    """Return a spec whose selectors ask for the values that the pod's labels have."""
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
