"""Label selectors, read once and matched often, with Kubernetes' meaning and error texts.

# requirement: one expression over labels, as the API has it: key, operator, values
# rule: the same, read: the values are a set, the operator is known
# exact: the labels that must have a value; most selectors have nothing else
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from moorage.api import names
from moorage.api.go_integers import parse_int64
from moorage.api.meta import LabelSelector

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GREATER = "Gt"
LESS = "Lt"

SHORT_RULES_MAX = 8  # are looked at one by one
SELECTOR_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
OPERATORS = (*SELECTOR_OPERATORS, GREATER, LESS)


class Requirement(Protocol):
    """One expression over labels: of a label selector or of a node selector."""

    @property
    def key(self) -> str:
        """The label."""

    @property
    def operator(self) -> str:
        """How the label must relate to the values."""

    @property
    def values(self) -> tuple[str, ...]:
        """The value it is compared with."""


class LabelRule(NamedTuple):
    """A requirement that was read."""

    key: str
    operator: str
    values: frozenset[str]
    limit: int | None = None  # of Gt and Lt

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels keep the rule."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else parse_int64(value)
        if number is None or self.limit is None:
            return False
        return number > self.limit if self.operator == GREATER else number < self.limit


class SelectorFault(NamedTuple):
    """A selector cannot be parsed; carries Kubernetes' message."""

    text: str


class RulesByLabel:
    """The rules of a long selector by label: an object costs its labels, not the selector.

    It says nothing that the rules do not, so selectors are compared without it.
    """

    __slots__ = ("_by_key", "_needed")

    def __init__(self, rules: Iterable[LabelRule]) -> None:
        merged: dict[tuple[str, str, int | None], LabelRule] = {}
        for rule in rules:
            place = (rule.key, rule.operator, rule.limit)
            if (other := merged.get(place)) is not None and rule.operator == NOT_IN:
                rule = rule._replace(values=rule.values | other.values)
            elif other is not None and rule.operator == IN:
                rule = rule._replace(values=rule.values & other.values)
            merged[place] = rule
        self._by_key: dict[str, list[LabelRule]] = {}
        for rule in merged.values():
            self._by_key.setdefault(rule.key, []).append(rule)
        is_free = (NOT_IN, DOES_NOT_EXIST)
        self._needed = {rule.key for rule in merged.values() if rule.operator not in is_free}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RulesByLabel)

    def __hash__(self) -> int:
        return 0

    def hold(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels keep all rules."""
        if len(self._needed) > len(labels) or not self._needed <= labels.keys():
            return False
        return all(rule.holds(labels) for key in labels for rule in self._by_key.get(key, ()))


class Selector(Struct, frozen=True, gc=False):
    """A query over labels: all requirements must hold; the empty one selects everything."""

    exact: tuple[tuple[str, str], ...] = ()
    rules: tuple[LabelRule, ...] = ()
    by_label: RulesByLabel | None = None  # of many rules

    @property
    def is_empty(self) -> bool:
        """Whether it has no requirements, and so selects everything."""
        return not (self.exact or self.rules)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels are selected: one look-up for each part of the selector."""
        for key, value in self.exact:
            if labels.get(key) != value:
                return False
        if self.by_label is not None:
            return self.by_label.hold(labels)
        for rule in self.rules:  # noqa: SIM110 - a generator would take twice the time
            if not rule.holds(labels):
                return False
        return True

    def and_labels(self, labels: Mapping[str, str]) -> Selector:
        """Return the selector that asks for these values as well."""
        return _selector((*self.exact, *sorted(labels.items())), self.rules)

    def and_requirements(self, requirements: Iterable[Requirement]) -> Selector:
        """Return the selector that asks for these as well; they have no errors."""
        exact, rules = list(self.exact), list(self.rules)
        for requirement in requirements:
            if requirement.operator == IN and len(requirement.values) == 1:
                exact.append((requirement.key, requirement.values[0]))
            else:
                rules.append(_read_rule(requirement))
        return _selector(tuple(exact), tuple(rules))

    def and_selector(self, other: Selector) -> Selector:
        """Return the selector that selects what both do."""
        return _selector(self.exact + other.exact, self.rules + other.rules)

    def asks_for(self, key: str) -> bool:
        """Return whether a requirement is about the label."""
        return any(key == asked for asked, _ in self.exact) or any(
            key == rule.key for rule in self.rules
        )


def _selector(exact: tuple[tuple[str, str], ...], rules: tuple[LabelRule, ...]) -> Selector:
    by_label = RulesByLabel(rules) if len(rules) > SHORT_RULES_MAX else None
    if len(exact) > SHORT_RULES_MAX:
        exact = tuple(dict.fromkeys(exact))
    return Selector(exact, rules, by_label)


EVERYTHING = Selector()
NOTHING = Selector(rules=(LabelRule("", IN, frozenset()),))


def read_selector(selector: LabelSelector | None) -> Selector | SelectorFault:
    """Return the selector, or its first error; None selects nothing."""
    if selector is None:
        return NOTHING
    for key, value in sorted(selector.match_labels.items()):
        faults = name_faults(key, (value,), "")
        if faults:
            return SelectorFault(joined(faults))
    for requirement in selector.match_expressions:
        if requirement.operator not in SELECTOR_OPERATORS:
            quoted = f'"{requirement.operator}"'
            return SelectorFault(f"{quoted} is not a valid label selector operator")
        faults = requirement_faults(requirement, "")
        if faults:
            return SelectorFault(joined(faults))
    return exactly(selector.match_labels).and_requirements(selector.match_expressions)


def exactly(labels: Mapping[str, str]) -> Selector:
    """Return the selector of what has all these labels; it is not checked, as in Kubernetes."""
    return Selector(exact=tuple(sorted(labels.items())))


def _read_rule(requirement: Requirement) -> LabelRule:
    """Return a requirement without errors as a rule."""
    limit = None
    if requirement.operator in (GREATER, LESS):
        limit = parse_int64(requirement.values[0])
    return LabelRule(requirement.key, requirement.operator, frozenset(requirement.values), limit)


# --- errors -------------------------------------------------------------------------------------


def requirement_faults(requirement: Requirement, place: str) -> list[str]:
    """Return the errors of a requirement; each begins with the place, which ends with a dot."""
    operator, values = requirement.operator, requirement.values
    if _PLAIN_NAME(requirement.key) and _has_plain_values(operator, values):
        return []
    if operator not in OPERATORS:
        return [unsupported_operator(place, operator, OPERATORS)]
    found: list[str] = []
    shown = f"{place}values: Invalid value: {shown_values(values)}"
    if operator in (IN, NOT_IN) and not values:
        found.append(f"{shown}: for 'in', 'notin' operators, values set can't be empty")
    if operator in (EXISTS, DOES_NOT_EXIST) and values:
        found.append(f"{shown}: values set must be empty for exists and does not exist")
    if operator in (GREATER, LESS):
        found += _comparison_faults(values, place, shown)
    key_faults, value_faults = _name_faults(requirement.key, values, place)
    return key_faults + found + value_faults


# Names without a prefix. Most are, and to look for errors one by one takes ten times longer.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?").fullmatch


def _has_plain_values(operator: str, values: tuple[str, ...]) -> bool:
    if operator in (EXISTS, DOES_NOT_EXIST):
        return not values
    return operator in (IN, NOT_IN) and bool(values) and all(map(_PLAIN_NAME, values))


def name_faults(key: str, values: tuple[str, ...], place: str) -> list[str]:
    """Return the errors of a label's key and values as names."""
    key_faults, value_faults = _name_faults(key, values, place)
    return key_faults + value_faults


def unsupported_operator(place: str, operator: str, supported: tuple[str, ...]) -> str:
    """Return the error of an unknown operator."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return f'{place}operator: Unsupported value: "{operator}": supported values: {listed}'


def shown_values(values: tuple[str, ...]) -> str:
    """Return values as Kubernetes shows them in errors: `["a","b"]`."""
    return "[" + ",".join(f'"{value}"' for value in values) + "]"


def joined(faults: list[str]) -> str:
    """Return errors as Kubernetes joins them: each once, in brackets if there are several."""
    distinct = list(dict.fromkeys(faults))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _comparison_faults(values: tuple[str, ...], place: str, shown: str) -> list[str]:
    found = []
    if len(values) != 1:
        found.append(f"{shown}: for 'Gt', 'Lt' operators, exactly one value is required")
    return found + [
        f'{place}values[{number}]: Invalid value: "{value}": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
        for number, value in enumerate(values)
        if parse_int64(value) is None
    ]


def _name_faults(key: str, values: tuple[str, ...], place: str) -> tuple[list[str], list[str]]:
    """Return the errors of the key and of the values."""
    reasons = "; ".join(names.label_name(key))
    key_faults = [f'{place}key: Invalid value: "{key}": {reasons}'] if reasons else []
    return key_faults, [
        f'{place}values[{number}][{key}]: Invalid value: "{value}": {reasons}'
        for number, value in enumerate(values)
        if (reasons := "; ".join(names.label_value(value)))
    ]
