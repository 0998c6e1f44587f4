"""Which nodes a node selector, or a pod, admits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.core.pod import Pod
from moorage.api.labels import (
    EVERYTHING,
    IN,
    NOT_IN,
    Selector,
    exactly,
    joined,
    requirement_faults,
    shown_values,
    unsupported_operator,
)

FIELD_OPERATORS = (IN, NOT_IN)
NAME_FIELD = "metadata.name"


class FieldRule(Struct, frozen=True, gc=False):
    """A field of the node that must, or must not, have a value."""

    key: str
    value: str
    is_wanted: bool

    def holds(self, name: str) -> bool:
        """Return whether the node of this name keeps the rule; it has no other field."""
        value = name if self.key == NAME_FIELD else ""
        return (value == self.value) == self.is_wanted


class NodeTerm(Struct, frozen=True, gc=False):
    """Rules over a node's labels and fields that must all hold; without any, none matches."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldRule, ...] = ()
    faults: tuple[str, ...] = ()
    is_empty: bool = False

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with this name and these labels matches."""
        if self.is_empty or self.faults or not self.labels.matches(labels):
            return False
        return all(rule.holds(name) for rule in self.fields)


class NodeQuery(Struct, frozen=True, gc=False):
    """Terms of which one must hold."""

    terms: tuple[NodeTerm, ...]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with this name and these labels matches."""
        return any(term.matches(name, labels) for term in self.terms)

    @property
    def fault(self) -> str | None:
        """Why the selector cannot be read, or None."""
        found = [fault for term in self.terms for fault in term.faults]
        return joined(found) if found else None


def read_node_selector(selector: NodeSelector) -> NodeQuery:
    """Return a node selector, ready to match nodes."""
    terms = selector.node_selector_terms or ()
    return NodeQuery(
        tuple(read_node_term(term, f"nodeSelectorTerms[{n}]") for n, term in enumerate(terms))
    )


def read_node_term(term: NodeSelectorTerm, place: str) -> NodeTerm:
    """Return one term; errors name the place."""
    faults: list[str] = []
    for index, requirement in enumerate(term.match_expressions):
        faults += requirement_faults(requirement, f"{place}.matchExpressions[{index}].")
    for index, requirement in enumerate(term.match_fields):
        faults += _field_faults(requirement, f"{place}.matchFields[{index}].")
    if faults:
        return NodeTerm(faults=tuple(faults))
    return NodeTerm(
        labels=EVERYTHING.and_requirements(term.match_expressions),
        fields=tuple(_field_rules(term.match_fields)),
        is_empty=not (term.match_expressions or term.match_fields),
    )


def _field_rules(requirements: Iterable[NodeSelectorRequirement]) -> Iterable[FieldRule]:
    for requirement in requirements:
        yield FieldRule(requirement.key, requirement.values[0], requirement.operator == IN)


def _field_faults(requirement: NodeSelectorRequirement, place: str) -> list[str]:
    if requirement.operator not in FIELD_OPERATORS:
        return [unsupported_operator(place, requirement.operator, FIELD_OPERATORS)]
    if len(requirement.values) != 1:
        shown = shown_values(requirement.values)
        return [f"{place}values: Invalid value: {shown}: must have one element"]
    return []


class NodeNeed(NamedTuple):
    """The pod's node selector and its required node affinity: both must hold."""

    labels: Selector
    query: NodeQuery | None

    def is_met(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the pod may go to a node of this name with these labels."""
        if not self.labels.matches(labels):
            return False
        return self.query is None or self.query.matches(name, labels)


def read_need(pod: Pod) -> NodeNeed | None:
    """Return what nodes must be like, or None where every node will do."""
    required = required_nodes(pod)
    if required is None and not pod.spec.node_selector:
        return None
    labels = exactly(pod.spec.node_selector) if pod.spec.node_selector else EVERYTHING
    return NodeNeed(labels, None if required is None else read_node_selector(required))


def required_nodes(pod: Pod) -> NodeSelector | None:
    """Return which nodes the affinity of a pod admits, if it has one."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None
