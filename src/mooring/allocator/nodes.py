"""Does a node selector match a node? Unreadable selectors are a fault, as in Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from mooring.allocator.errors import AllocationError
from mooring.api import names
from mooring.api.core.node import Node
from mooring.api.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
INT64_DIGITS_MAX = 19


def matches_node(
    node: Node, *, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    """Return whether devices with this node selection can be used on the node."""
    if node_name:
        return node.metadata.name == node_name
    if all_nodes:
        return True
    if selector is None:
        return False
    fault = _fault(selector)
    if fault is not None:
        raise AllocationError(f"failed to parse node selector {_go_text(selector)}: {fault}")
    terms = selector.node_selector_terms or ()
    return any(_term_matches(term, node) for term in terms)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not (term.match_expressions or term.match_fields):
        return False
    labels = node.metadata.labels or {}
    if not all(_label_matches(requirement, labels) for requirement in term.match_expressions):
        return False
    return all(_field_matches(requirement, node) for requirement in term.match_fields)


def _label_matches(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    limit = _int64(requirement.values[0])
    number = None if value is None else _int64(value)
    if number is None or limit is None:
        return False
    return number > limit if requirement.operator == "Gt" else number < limit


def _field_matches(requirement: NodeSelectorRequirement, node: Node) -> bool:
    value = node.metadata.name if requirement.key == "metadata.name" else ""
    return (value == requirement.values[0]) == (requirement.operator == "In")


def _int64(text: str) -> int | None:
    """int64 = [ "+" | "-" ] digit digit*"""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits.lstrip("0")) > INT64_DIGITS_MAX:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@lru_cache(maxsize=1024)
def _fault(selector: NodeSelector) -> str | None:
    """Return why a selector cannot be read, or None."""
    found: list[str] = []
    for number, term in enumerate(selector.node_selector_terms or ()):
        place = f"nodeSelectorTerms[{number}]"
        for index, requirement in enumerate(term.match_expressions):
            found += _label_faults(requirement, f"{place}.matchExpressions[{index}]")
        for index, requirement in enumerate(term.match_fields):
            found += _field_faults(requirement, f"{place}.matchFields[{index}]")
    if not found:
        return None
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def _label_faults(requirement: NodeSelectorRequirement, place: str) -> list[str]:
    operator, values = requirement.operator, requirement.values
    if operator not in OPERATORS:
        return [_unsupported(place, operator, OPERATORS)]
    found = []
    if reasons := names.label_name(requirement.key):
        found.append(_invalid(f"{place}.key", requirement.key, reasons))
    shown = f"{place}.values: Invalid value: {_go_list(values)}"
    if operator in ("In", "NotIn") and not values:
        found.append(f"{shown}: for 'in', 'notin' operators, values set can't be empty")
    if operator in ("Exists", "DoesNotExist") and values:
        found.append(f"{shown}: values set must be empty for exists and does not exist")
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            found.append(f"{shown}: for 'Gt', 'Lt' operators, exactly one value is required")
        found += [
            f"{place}.values[{number}]: Invalid value: {_quoted(value)}: "
            "for 'Gt', 'Lt' operators, the value must be an integer"
            for number, value in enumerate(values)
            if _int64(value) is None
        ]
    return found + [
        _invalid(f"{place}.values[{number}][{requirement.key}]", value, reasons)
        for number, value in enumerate(values)
        if (reasons := names.label_value(value))
    ]


def _field_faults(requirement: NodeSelectorRequirement, place: str) -> list[str]:
    if requirement.operator not in ("In", "NotIn"):
        return [_unsupported(place, requirement.operator, ("In", "NotIn"))]
    if len(requirement.values) != 1:
        shown = _go_list(requirement.values)
        return [f"{place}.values: Invalid value: {shown}: must have one element"]
    return []


def _invalid(place: str, text: str, reasons: Iterable[str]) -> str:
    return f"{place}: Invalid value: {_quoted(text)}: {'; '.join(reasons)}"


def _unsupported(place: str, operator: str, supported: tuple[str, ...]) -> str:
    listed = ", ".join(map(_quoted, supported))
    return f"{place}.operator: Unsupported value: {_quoted(operator)}: supported values: {listed}"


def _quoted(text: str) -> str:
    return f'"{text}"'


def _go_list(values: tuple[str, ...]) -> str:
    return f"[{','.join(map(_quoted, values))}]"


def _go_text(selector: NodeSelector) -> str:
    """Return the selector as Kubernetes prints it in its messages."""
    terms = "".join(
        f"NodeSelectorTerm{{MatchExpressions:{_go_requirements(term.match_expressions)},"
        f"MatchFields:{_go_requirements(term.match_fields)},}},"
        for term in selector.node_selector_terms or ()
    )
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _go_requirements(requirements: tuple[NodeSelectorRequirement, ...]) -> str:
    shown = "".join(
        f"NodeSelectorRequirement{{Key:{requirement.key},Operator:{requirement.operator},"
        f"Values:[{' '.join(requirement.values)}],}},"
        for requirement in requirements
    )
    return f"[]NodeSelectorRequirement{{{shown}}}"
