"""What devices answer to a comparison that none of them fulfils, and the comparison that was meant.

# subject: what is compared; its values come with the number of devices that have each
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from mooring.api.quantity import Quantity
from mooring.api.semver import Version
from mooring.cel.lang import ast
from mooring.insight.expressions.comparisons import ORDER, TEXT_FUNCTIONS, Comparison
from mooring.insight.expressions.explanation import Atom
from mooring.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind, fitting
from mooring.insight.expressions.syntax import shown
from mooring.insight.expressions.values import (
    compared as compared_text,
)
from mooring.insight.expressions.values import (
    converted,
    in_other_units,
    is_quantity,
    is_version,
    literal,
    quantity_of,
    similar_part,
    similar_texts,
    tallied,
    tally_of,
    type_name,
    version_of,
    with_article,
)
from mooring.insight.messages import counted
from mooring.kit.similar_names import similar

OTHER_VALUES_MAX: Final = 3
NEAR_VALUES_MAX: Final = 3
UNIT_FACTOR_MAX: Final = 2  # how much less another unit may make of what devices have
_ORDERED: Final = (int, Quantity, Version)


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


Elsewhere = Callable[[Any], Iterator[Option]]


def compared_mistakes(
    given: Compared, is_narrowed: bool, elsewhere: Elsewhere
) -> Iterator[Mistake]:
    """Yield what is wrong with a question that has the wanted result for no value."""
    compared = given.comparison
    if compared is None:
        yield _plain(given)
    elif (wrong := _wrong_literal(given, compared)) is not None:
        yield wrong
    elif (mistyped := _mistyped(given, compared)) is not None:
        yield mistyped
    elif not given.atom.wants_yes or compared.relation == "!=":
        yield _excluded(given)
    elif compared.relation in ORDER:
        yield _out_of_bounds(given, compared, is_narrowed)
    elif compared.relation in TEXT_FUNCTIONS:
        yield _unlike(given, compared)
    else:
        yield _unequal(given, compared, is_narrowed, elsewhere)


# --- literals that are nothing, and types ---------------------------------------------------


def _wrong_literal(given: Compared, compared: Comparison) -> Mistake | None:
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


def _mistyped(given: Compared, compared: Comparison) -> Mistake | None:
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


def _plain(given: Compared) -> Mistake:
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
