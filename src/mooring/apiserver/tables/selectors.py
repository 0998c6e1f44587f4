"""Labels and selectors as the cells of tables show them."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.labels import SelectorFault, read_selector
from mooring.api.meta import LabelSelector, LabelSelectorRequirement
from mooring.apiserver.tables.columns import NONE

_OPERATORS = {"In": "in", "NotIn": "notin"}


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels in one line."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def selector_text(selector: LabelSelector | None) -> str:
    """Return a selector in the language of kubectl's -l, and `<none>` if it says nothing."""
    text = plain_selector_text(selector)
    return "<error>" if text is None else text or NONE


def plain_selector_text(selector: LabelSelector | None) -> str | None:
    """Return a selector in the language of kubectl's -l; None if it is not valid."""
    if selector is None:
        return ""
    if isinstance(read_selector(selector), SelectorFault):
        return None
    parts = [(key, f"{key}={value}") for key, value in sorted(selector.match_labels.items())]
    parts += [(rule.key, _requirement_text(rule)) for rule in selector.match_expressions]
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def _requirement_text(rule: LabelSelectorRequirement) -> str:
    match rule.operator:
        case "Exists":
            return rule.key
        case "DoesNotExist":
            return f"!{rule.key}"
        case operator:
            return f"{rule.key} {_OPERATORS[operator]} ({','.join(sorted(set(rule.values)))})"
