"""Node selectors, read once and asked of many nodes.

A term that cannot be read matches no node, and its faults are kept: who cares asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from mooring.api.labels import (
    EVERYTHING,
    IN,
    NOT_IN,
    Selector,
    joined,
    requirement_faults,
    unsupported_operator,
)
from mooring.api.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

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
        """Return whether a node of this name with these labels is meant."""
        if self.is_empty or self.faults or not self.labels.matches(labels):
            return False
        return all(rule.holds(name) for rule in self.fields)


class NodeQuery(Struct, frozen=True, gc=False):
    """Terms of which one must hold."""

    terms: tuple[NodeTerm, ...]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node of this name with these labels is meant."""
        return any(term.matches(name, labels) for term in self.terms)

    @property
    def fault(self) -> str | None:
        """Why the selector cannot be read, or None."""
        found = [fault for term in self.terms for fault in term.faults]
        return joined(found) if found else None


def read_node_selector(selector: NodeSelector) -> NodeQuery:
    """Return a node selector, ready to be asked."""
    terms = selector.node_selector_terms or ()
    return NodeQuery(
        tuple(read_node_term(term, f"nodeSelectorTerms[{n}]") for n, term in enumerate(terms))
    )


def read_node_term(term: NodeSelectorTerm, place: str) -> NodeTerm:
    """Return one term; the place is where its faults are said to be."""
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
        shown = "[" + ",".join(f'"{value}"' for value in requirement.values) + "]"
        return [f"{place}values: Invalid value: {shown}: must have one element"]
    return []
