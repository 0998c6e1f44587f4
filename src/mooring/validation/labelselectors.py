"""Rules for selectors of labels, and for what they must select."""

from __future__ import annotations

from mooring.api.fieldpath import Path
from mooring.api.labels import Selector, read_selector
from mooring.api.meta import LabelSelector, LabelSelectorRequirement
from mooring.validation.checks import each, label_name, label_value
from mooring.validation.errors import Errors, forbidden, invalid, required


def check_label_selector(selector: LabelSelector, path: Path) -> Errors:
    """Check the labels and the expressions of a selector."""
    found = check_labels(selector.match_labels, path.child("matchLabels"))
    expressions = selector.match_expressions
    return found + each(expressions, _check_requirement, path.child("matchExpressions"))


def check_labels(labels: dict[str, str], path: Path) -> Errors:
    """Check the names and the values of labels."""
    found: Errors = []
    for key, value in labels.items():
        found += label_name(key, path)
        found += label_value(value, path)
    return found


def selector_of(selector: LabelSelector | None) -> Selector | None:
    """Return a selector as one can ask it; None if it cannot be read."""
    found = read_selector(selector)
    return found if isinstance(found, Selector) else None


def is_empty(selector: LabelSelector) -> bool:
    """Tell whether a selector asks for nothing."""
    return not selector.match_labels and not selector.match_expressions


def _check_requirement(requirement: LabelSelectorRequirement, path: Path) -> Errors:
    found: Errors = []
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
