"""What devices answer to a comparison that none of them fulfils, and what was meant by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from moorage.api.quantity import Quantity
from moorage.api.semver import Version
from moorage.cel.lang import ast
from moorage.insight.expressions.comparisons import ORDER, TEXT_FUNCTIONS, Comparison
from moorage.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind
from moorage.insight.expressions.mistyped import (
    Compared,
    mistyped_literal,
    no_condition,
    wrong_literal,
)
from moorage.insight.expressions.syntax import shown
from moorage.insight.expressions.values import (
    compared as compared_text,
)
from moorage.insight.expressions.values import (
    in_other_units,
    literal,
    quantity_of,
    similar_part,
    similar_texts,
    tallied,
    tally_of,
)
from moorage.insight.messages import counted, fitting
from moorage.kit.similar_names import similar

OTHER_VALUES_MAX: Final = 3
NEAR_VALUES_MAX: Final = 3
UNIT_FACTOR_MAX: Final = 2  # how much less another unit may make of what devices have
_ORDERED: Final = (int, Quantity, Version)


Elsewhere = Callable[[Any], Iterator[Option]]


def compared_mistakes(
    given: Compared, is_narrowed: bool, elsewhere: Elsewhere
) -> Iterator[Mistake]:
    """Yield what is wrong with a question that has the wanted result for no value."""
    compared = given.comparison
    if compared is None:
        yield no_condition(given)
    elif (wrong := wrong_literal(given, compared)) is not None:
        yield wrong
    elif (mistyped := mistyped_literal(given, compared)) is not None:
        yield mistyped
    elif not given.atom.wants_yes or compared.relation == "!=":
        yield _excluded(given)
    elif compared.relation in ORDER:
        yield _out_of_bounds(given, compared, is_narrowed)
    elif compared.relation in TEXT_FUNCTIONS:
        yield _unlike(given, compared)
    else:
        yield _unequal(given, compared, is_narrowed, elsewhere)


# --- values ---------------------------------------------------------------------------------


def _excluded(given: Compared) -> Mistake:
    tally = tally_of(given.values)
    cause = f"every device has {given.label} {tallied(tally, shown_max=2)}, which is excluded"
    short = f"every value of {given.label} is excluded"
    return Mistake(MistakeKind.VALUE, fitting(cause, short), (), given.subject)


def _unequal(
    given: Compared, compared: Comparison, is_narrowed: bool, elsewhere: Elsewhere
) -> Mistake:
    """Return what values there are in place of the asked ones."""
    values = _choices(given)
    if isinstance(given.sample, dict):
        return _no_key(given, compared, values)
    options = list(_near_options(given, compared, values))
    if not compared.wraps and compared.relation in ("==", "in", "includes"):
        options += elsewhere(compared.literal.value)
    options += _other_options(given, compared, values)
    asked = ", ".join(_asked_value(compared, each) for each in compared.literals[:2])
    who = "no device that passes the rest" if is_narrowed else "no device"
    near = options[0] if options and options[0].kind is RepairKind.VALUE else None
    return Mistake(
        MistakeKind.TOGETHER if is_narrowed else MistakeKind.VALUE,
        _unequal_cause(given, f"{who} has {given.label} {asked}", near),
        tuple(options),
        given.subject,
    )


def _no_key(given: Compared, compared: Comparison, values: list[tuple[Any, int]]) -> Mistake:
    """Return which name of a domain is meant, where `in` asks for one that is not there."""
    asked = str(compared.literal.value)
    options = list(_near_options(given._replace(label="name"), compared, values))
    fact = f"attribute {asked} does not exist"
    names = ", ".join(sorted(str(value) for value, _ in values))
    cause = f"{fact}: there is {names}"
    if options:
        cause = f"{fact}: did you mean {next(iter(options[0].instead.values()))}?"
    return Mistake(MistakeKind.FIELD, fitting(cause, fact), tuple(options), given.subject)


def _unequal_cause(given: Compared, fact: str, near: Option | None) -> str:
    tally = tally_of(given.values)
    counts = [tallied(tally, shown_max=number) for number in (3, 2, 1)]
    if near is None:
        return fitting(*(f"{fact}: devices have {each}" for each in counts), fact)
    hint = f"; did you mean {next(iter(near.instead.values()))}?"
    if near.instead.keys() == {given.atom.node.id} or "ask for it in" in near.text:
        hint = ""
    questions = [f"{fact}: devices have {each}{hint}" for each in counts]
    return fitting(*questions, f"{fact}{hint.replace(';', ':')}", fact)


def _asked_value(compared: Comparison, each: ast.Literal) -> str:
    return str(each.value) if compared.wraps else shown(each.value)


def _choices(given: Compared) -> list[tuple[Any, int]]:
    """Return the values that can be compared with, the most frequent first."""
    found: dict[Any, int] = {}
    for value, count in given.values:
        inner: Any = (value,)
        if isinstance(value, list | tuple | dict):
            inner = value
        for each in inner:
            found[each] = found.get(each, 0) + count
    return sorted(found.items(), key=lambda pair: -pair[1])


def _near_options(
    given: Compared, compared: Comparison, values: list[tuple[Any, int]]
) -> Iterator[Option]:
    texts = {value: count for value, count in values if isinstance(value, str)}
    amounts = {value: count for value, count in values if isinstance(value, Quantity)}
    for each in compared.literals if compared.wraps == "quantity" else ():
        for text, amount in in_other_units(str(each.value)):
            if amount in amounts:
                said = f"ask for {given.label} {text} instead of {each.value}"
                yield Option(RepairKind.UNIT, said, {each.id: f'"{text}"'})
    for each in compared.literals:
        if not isinstance(each.value, str) or compared.wraps:
            continue
        for near in similar_texts(each.value, texts)[:NEAR_VALUES_MAX]:
            yield _value_option(given, compared, each, near, texts[near], RepairKind.VALUE)


def _other_options(
    given: Compared, compared: Comparison, values: list[tuple[Any, int]]
) -> Iterator[Option]:
    """Yield values that devices have instead; the opposite of what is asked for is none."""
    each = compared.literal
    known = {value: count for value, count in values if isinstance(value, str)}
    near = similar(each.value, known) if isinstance(each.value, str) else []
    ordered = [(value, known[value]) for value in near[:OTHER_VALUES_MAX]] + values
    for value, count in ordered[:OTHER_VALUES_MAX]:
        if not isinstance(value, bool):
            yield _value_option(given, compared, each, value, count, RepairKind.OTHER_VALUE)


def _value_option(
    given: Compared,
    compared: Comparison,
    each: ast.Literal,
    value: Any,
    count: int,
    kind: RepairKind,
) -> Option:
    verb = "has" if count == 1 else "have"
    said = f"ask for {given.label} {shown(value)}, which {counted(count, 'device')} {verb}"
    text = f'"{value}"' if compared.wraps else literal(value)
    return Option(kind, f"{said}, instead of {_asked_value(compared, each)}", {each.id: text})


def _unlike(given: Compared, compared: Comparison) -> Mistake:
    """Return what is wrong with a part of a text that no value has."""
    asked, relation = compared.literal.value, compared.relation
    texts = [value for value, _ in given.values if isinstance(value, str)]
    made: list[str] = []
    if relation == "matches":
        globbed = asked.replace(".*", "*").replace("*", ".*")
        loose = asked.removeprefix("^").removesuffix("$")
        made = [f"(?i){asked}", globbed, f"(?i){globbed}", loose, f"(?i){loose}"]
        news = [f"{given.subject}.matches({literal(each)})" for each in made]
    else:
        near = similar_part(asked, texts)
        parts = [each for each in (near,) if each is not None]
        news = [f"{given.subject}.{relation}({literal(each)})" for each in parts]
        news += [f"{given.subject}.contains({literal(each)})" for each in (asked, *parts)]
    fact = f"no device has {given.label} that {_function_text(relation)} {shown(asked)}"
    options = tuple(
        Option(RepairKind.VALUE, f"use {new}", given.instead(new)) for new in dict.fromkeys(news)
    )
    return Mistake(MistakeKind.VALUE, _unequal_cause(given, fact, None), options, given.subject)


def _function_text(relation: str) -> str:
    return {"startsWith": "starts with", "endsWith": "ends with"}.get(relation, relation)


# --- amounts --------------------------------------------------------------------------------


def _out_of_bounds(given: Compared, compared: Comparison, is_narrowed: bool) -> Mistake:
    """Return the amount that devices have, where more, or less, is asked for."""
    relation, asked = compared.relation, compared.literal.value
    known = [value for value, _ in given.values if isinstance(value, _ORDERED)]
    if not known or len({type(value) for value in known}) != 1:
        cause = f"{given.label} is {tallied(tally_of(given.values), shown_max=2)}"
        return Mistake(MistakeKind.ERROR, fitting(cause), (), given.subject)
    best = max(known) if ORDER[relation] > 0 else min(known)
    bound = "at most" if ORDER[relation] > 0 else "at least"
    than = {">": "more than ", "<": "less than "}.get(relation, "")
    who = "devices that pass the rest" if is_narrowed else "devices"
    cause = f"{given.label} {than}{asked} is asked for, but {who} have {bound} {best}"
    options = [*_unit_options(given, compared, best), _amount_option(given, compared, best)]
    kind = MistakeKind.TOGETHER if is_narrowed else MistakeKind.VALUE
    return Mistake(kind, fitting(cause), tuple(options), given.subject)


def _unit_options(given: Compared, compared: Comparison, best: Any) -> Iterator[Option]:
    """Yield the same number in a unit in which devices have a little more."""
    if not isinstance(best, Quantity):
        return
    asked = str(compared.literal.value)
    for text, other in in_other_units(asked):
        is_near = other <= best <= other * UNIT_FACTOR_MAX
        if ORDER[compared.relation] < 0:
            is_near = best <= other <= best * UNIT_FACTOR_MAX
        if is_near and quantity_of(asked) != best:
            said = f"ask for {given.label} {text} instead of {asked}: devices have {best}"
            yield Option(RepairKind.UNIT, said, {compared.literal.id: f'"{text}"'})
            return


def _amount_option(given: Compared, compared: Comparison, best: Any) -> Option:
    relation = compared.relation
    inclusive = relation if relation.endswith("=") else f"{relation}="
    text = f"ask for {given.label} {best} instead of {compared.literal.value}"
    if inclusive == relation:
        new = f'"{best}"' if compared.wraps else literal(best)
        return Option(RepairKind.AMOUNT, text, {compared.literal.id: new})
    made = compared_text(given.subject, inclusive, best)
    return Option(RepairKind.AMOUNT, f"{text}, and allow {best} itself", given.instead(made))
