"""Rules of label selectors and node selectors."""

from __future__ import annotations

from moorage.api import names
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.field_path import Path
from moorage.api.labels import Selector, read_selector
from moorage.api.meta import LabelSelector, LabelSelectorRequirement
from moorage.validation.errors import ErrorList, FieldError, forbidden, invalid, required
from moorage.validation.field_rules import (
    each,
    each_invalid,
    label_name,
    label_value,
    validate_labels,
)


def validate_label_selector(selector: LabelSelector, path: Path) -> ErrorList:
    """Validate a label selector."""
    found = validate_labels(selector.match_labels, path.child("matchLabels"))
    expressions = selector.match_expressions
    return found + each(expressions, _validate_requirement, path.child("matchExpressions"))


def selector_of(selector: LabelSelector | None) -> Selector | None:
    """Return a parsed selector, or None if it is invalid."""
    found = read_selector(selector)
    return found if isinstance(found, Selector) else None


def is_empty(selector: LabelSelector) -> bool:
    """Return whether a selector is empty."""
    return not selector.match_labels and not selector.match_expressions


def _validate_requirement(requirement: LabelSelectorRequirement, path: Path) -> ErrorList:
    found: ErrorList = []
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                found.append(required(path.child("values"), detail))
        case "Exists" | "DoesNotExist":
            if requirement.values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                found.append(forbidden(path.child("values"), detail))
        case operator:
            detail = "not a valid selector operator"
            found.append(invalid(path.child("operator"), operator, detail))
    found += label_name(requirement.key, path.child("key"))
    return found + each(requirement.values, label_value, path.child("values"))


# --- node selectors -----------------------------------------------------------------------


def validate_node_selector(selector: NodeSelector, path: Path) -> ErrorList:
    """Validate a node selector."""
    terms = selector.node_selector_terms or ()
    place = path.child("nodeSelectorTerms")
    if not terms:
        return [required(place, "must have at least one node selector term")]
    return each(terms, validate_node_selector_term, place)


def validate_node_selector_term(
    term: NodeSelectorTerm, path: Path, *, any_values: bool = False
) -> ErrorList:
    """Validate a term; with `any_values`, for preferences, values need not be label values."""
    found: ErrorList = []
    for position, requirement in enumerate(term.match_expressions):
        place = path.child("matchExpressions").index(position)
        found += _check_expression(requirement, place, any_values=any_values)
    return found + each(term.match_fields, _validate_field, path.child("matchFields"))


def _check_expression(
    requirement: NodeSelectorRequirement, path: Path, *, any_values: bool
) -> ErrorList:
    found: ErrorList = []
    values = path.child("values")
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                found.append(required(values, detail))
        case "Exists" | "DoesNotExist":
            if requirement.values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                found.append(forbidden(values, detail))
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                found.append(required(values, detail))
        case _:
            found.append(_not_an_operator(requirement, path))
    found += label_name(requirement.key, path.child("key"))
    if any_values:
        return found
    for position, value in enumerate(requirement.values):
        found += each_invalid(values.index(position), value, names.label_value(value))
    return found


def _validate_field(requirement: NodeSelectorRequirement, path: Path) -> ErrorList:
    found: ErrorList = []
    values = path.child("values")
    if requirement.operator not in ("In", "NotIn"):
        found.append(_not_an_operator(requirement, path))
    elif len(requirement.values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(values, detail))
    if requirement.key != "metadata.name":
        detail = "not a valid field selector key"
        return [*found, invalid(path.child("key"), requirement.key, detail)]
    for position, value in enumerate(requirement.values):
        found += each_invalid(values.index(position), value, names.dns1123_subdomain(value))
    return found


def _not_an_operator(requirement: NodeSelectorRequirement, path: Path) -> FieldError:
    return invalid(path.child("operator"), requirement.operator, "not a valid selector operator")
