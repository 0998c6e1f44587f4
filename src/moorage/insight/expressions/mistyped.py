"""Comparisons with a literal of another type than devices have, or with one that is nothing.

slot == "0", and slot is an int     ─► slot == 0
zones == "left", and it is a list   ─► zones.includes("left")
semver("12.8")                      ─► semver("12.8.0")

# subject: what is compared; its values come with the number of devices that have each
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from moorage.insight.expressions.comparisons import ORDER, TEXT_FUNCTIONS, Comparison
from moorage.insight.expressions.explanation import Atom
from moorage.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind
from moorage.insight.expressions.syntax import shown
from moorage.insight.expressions.values import (
    compared as compared_text,
)
from moorage.insight.expressions.values import (
    converted,
    is_quantity,
    is_version,
    literal,
    quantity_of,
    tallied,
    tally_of,
    type_name,
    version_of,
    with_article,
)
from moorage.insight.messages import fitting


class Compared(NamedTuple):
    """A question, and the values of its subject on devices."""

    subject: str
    label: str
    values: list[tuple[Any, int]]
    atom: Atom
    comparison: Comparison | None

    @property
    def sample(self) -> Any:
        """The value that most devices have."""
        return max(self.values, key=lambda pair: pair[1])[0]

    @property
    def elements(self) -> list[Any]:
        """The elements of values that are lists."""
        lists = (value for value, _ in self.values if isinstance(value, list | tuple))
        return list(dict.fromkeys(element for each in lists for element in each))

    def instead(self, text: str) -> dict[int, str]:
        """Return the question written in another way."""
        return {self.atom.node.id: text}


def wrong_literal(given: Compared, compared: Comparison) -> Mistake | None:
    """Return what is wrong with the text of a version or quantity."""
    asked = compared.literal.value
    if not isinstance(asked, str) or not compared.wraps:
        return None
    is_wrong = not (is_version if compared.wraps == "semver" else is_quantity)(asked)
    if not is_wrong:
        return None
    meant = version_of(asked) if compared.wraps == "semver" else quantity_of(asked)
    noun = "version" if compared.wraps == "semver" else "quantity"
    cause = f'{given.label} is compared with {compared.wraps}("{asked}"), which is no {noun}'
    if meant is None:
        return Mistake(MistakeKind.ERROR, cause, (), given.subject)
    rule = ": a version has three numbers" if noun == "version" else ""
    option = Option(
        RepairKind.TYPE,
        f'write {literal(meant)} instead of {compared.wraps}("{asked}")',
        {compared.literal.id: f'"{meant}"'},
    )
    said = f'{cause}{rule}; did you mean "{meant}"?'
    return Mistake(MistakeKind.ERROR, fitting(said, cause), (option,), given.subject)


def mistyped_literal(given: Compared, compared: Comparison) -> Mistake | None:
    """Return what is wrong with a literal of another type than devices have."""
    sample, relation, asked = given.sample, compared.relation, compared.literal.value
    if isinstance(sample, list | tuple):
        return _of_list(given, compared)
    if isinstance(sample, dict):
        return None
    if relation in (*TEXT_FUNCTIONS, "exists", "has"):
        return _of_scalar(given, compared)
    if type_name(sample) == _asked_type(compared):
        return None
    meant = [converted(each.value, sample) for each in compared.literals]
    options: list[Option] = []
    if isinstance(sample, str) and (relation in ORDER or None in meant):
        options += _parsed_subject(given, compared)
    elif None not in meant:
        options.append(_typed(given, compared, meant))
    if not options and relation in ("==", "in", "includes"):
        return None
    equal = [value for value, _ in given.values if value in meant and type(value) is type(sample)]
    have = (
        f"the {type_name(sample)} {shown(equal[0])}" if equal else with_article(type_name(sample))
    )
    cause = f"{given.label} is {have}, not {_asked_text(compared, asked)}"
    return Mistake(MistakeKind.ERROR, cause, tuple(options), given.subject)


def _asked_type(compared: Comparison) -> str:
    wrapped = {"quantity": "quantity", "semver": "version"}
    return wrapped.get(compared.wraps) or type_name(compared.literal.value)


def _asked_text(compared: Comparison, asked: Any) -> str:
    kind = _asked_type(compared)
    return f"the {kind} {asked if compared.wraps else shown(asked)}"


def _typed(given: Compared, compared: Comparison, meant: list[Any]) -> Option:
    kind = with_article(type_name(given.sample))
    if compared.relation == "in":
        texts = {
            each.id: literal(value) for each, value in zip(compared.literals, meant, strict=True)
        }
        if not compared.wraps:
            listed = ", ".join(texts.values())
            return Option(RepairKind.TYPE, f"compare {given.label} with {listed}", texts)
        text = f"{given.subject} in [{', '.join(map(literal, meant))}]"
    elif compared.relation == "includes":
        text = f"{given.subject}.includes({literal(meant[0])})"
    else:
        text = compared_text(given.subject, compared.relation, meant[0])
    said = f"compare {given.label} with {literal(meant[0])}, which is {kind}"
    return Option(RepairKind.TYPE, said, given.instead(text))


def _parsed_subject(given: Compared, compared: Comparison) -> Iterator[Option]:
    """Yield a string of devices read as the version, quantity or number that it is compared as."""
    function = compared.wraps or "int"
    text = f"{function}({given.subject})"
    asked = compared.literal.value
    value = asked
    if compared.wraps:
        value = version_of(asked) if compared.wraps == "semver" else quantity_of(asked)
    if value is not None:
        said = f"read {given.label}, a string, by {function}()"
        made = compared_text(text, compared.relation, value)
        yield Option(RepairKind.TYPE, said, given.instead(made))


def _of_list(given: Compared, compared: Comparison) -> Mistake | None:
    """Return what is wrong with a list that is compared as if it were one value."""
    asked, relation, elements = compared.literal.value, compared.relation, given.elements
    if relation in ("includes", "exists", "has") or not elements:
        return None
    found = _as_element(asked, elements)
    name, subject = given.label, given.subject
    if relation in ("==", "!="):
        new = f"{subject}.includes({literal(found)})"
        new = f"!{new}" if relation == "!=" else new
    elif relation == "in":
        texts = ", ".join(literal(_as_element(each.value, elements)) for each in compared.literals)
        new = f"{subject}.exists(v, v in [{texts}])"
    elif relation in TEXT_FUNCTIONS:
        new = f"{subject}.exists(v, v.{relation}({literal(asked)}))"
    else:
        new = f"{subject}.exists(v, {compared_text('v', relation, found)})"
    cause = f"{name} is a list, {shown(given.sample)}, not {_asked_text(compared, asked)}"
    short = f"{name} is a list, not {_asked_text(compared, asked)}"
    option = Option(RepairKind.TYPE, f"use {new}: {name} is a list", given.instead(new))
    return Mistake(MistakeKind.ERROR, fitting(cause, short), (option,), subject)


def _as_element(asked: Any, elements: list[Any]) -> Any:
    """Return a literal in the type of a list's elements."""
    if any(type(each) is type(asked) for each in elements):
        return asked
    meant = converted(asked, elements[0])
    return asked if meant is None else meant


def _of_scalar(given: Compared, compared: Comparison) -> Mistake | None:
    """Return what is wrong with one value that is taken for a list, or another for a string."""
    sample, relation, asked = given.sample, compared.relation, compared.literal.value
    if relation in TEXT_FUNCTIONS and isinstance(sample, str):
        return None
    kind = type_name(sample)
    if relation in ("exists", "has"):
        meant = converted(asked, sample)
        texts = [compared_text(given.subject, "==", asked if meant is None else meant)]
        if isinstance(sample, str) and relation == "has" and isinstance(asked, str):
            texts.append(f"{given.subject}.contains({literal(asked)})")
        cause = f"{given.label} is {with_article(kind)}, not a list: {shown(sample)}"
    else:
        texts = [f"string({given.subject}).{relation}({literal(asked)})"]
        meant = converted(asked, sample)
        if meant is not None:
            texts.append(compared_text(given.subject, "==", meant))
        cause = f"{given.label} is the {kind} {shown(sample)}, and only strings have {relation}()"
    options = [Option(RepairKind.TYPE, f"use {text}", given.instead(text)) for text in texts]
    return Mistake(MistakeKind.ERROR, fitting(cause), tuple(options), given.subject)


def no_condition(given: Compared) -> Mistake:
    """Return what is wrong with a question that is no comparison."""
    sample, tally = given.sample, tally_of(given.values)
    wanted = given.atom.wants_yes
    if isinstance(sample, bool):
        cause = f"no device has {given.label} {shown(wanted)}: it is {tallied(tally)}"
        return Mistake(MistakeKind.VALUE, fitting(cause), (), given.subject)
    meant = converted(wanted, sample)
    options: tuple[Option, ...] = ()
    if any(value == meant for value, _ in given.values):
        text = compared_text(given.subject, "==", meant)
        options = (Option(RepairKind.TYPE, f"use {text}", given.instead(text)),)
    kind = with_article(type_name(sample))
    cause = f"{given.label} is {kind}, {shown(sample)}, and no condition by itself"
    return Mistake(MistakeKind.ERROR, fitting(cause), options, given.subject)
