"""Expressions that do not compile, and what they mean as CEL writes it.

Texts that do not parse are corrected as texts, trees that do not check as trees:

    productName = "x" and …                   ─► productName == "x" && …
    capacity["d"].memory >= "40Gi"            ─► ….memory.compareTo(quantity("40Gi")) >= 0
    device.attributes["d/productName"] == "x" ─► device.attributes["d"].productName == "x"
    productName.startswith("x")               ─► productName.startsWith("x")

Whether the corrected text is right shows when it is tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from moorage.cel.device import DeviceCompiler
from moorage.cel.lang.errors import CompileError
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.evaluation import (
    TOO_COMPLEX,
    TOO_LONG,
    ExpressionEvaluator,
    evaluator_of,
)
from moorage.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind
from moorage.insight.expressions.miswritten import STRING, Respelt, Trees, outside_strings
from moorage.insight.messages import fitting

_PLACE: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_HAS_INDEX: Final = re.compile(r'has\((device\.\w+\["[^"]*"\])\["([A-Za-z_]\w*)"\]\)')
_HAS_DOMAIN: Final = re.compile(r'has\((device\.(?:attributes|capacity))\[("[^"]*")\]\)')
_UNQUOTED: Final = re.compile(r"([=!]=\s*)([A-Za-z][\w.:-]*(?: [\w.:-]+)+)\s*(?=$|&&|\|\|)")
# Texts that other languages have, and CEL's.
_SPELLINGS: Final = (
    (re.compile("[“”„]"), '"', "curly quotes are no quotes"),
    (re.compile("[‘’]"), "'", "curly quotes are no quotes"),
    (re.compile(r"===+"), "==", "=== is no operator, == is"),
    (re.compile(r"!=="), "!=", "!== is no operator, != is"),
    (re.compile(r"<>"), "!=", "<> is no operator, != is"),
    (re.compile(r"=>"), ">=", "=> is no operator, >= is"),
    (re.compile(r"=<"), "<=", "=< is no operator, <= is"),
    (re.compile(r"(?<![=!<>])=(?![=~])"), "==", "= is no operator, == is"),
    (re.compile(r"=~"), "==", "=~ is no operator, == is"),
    (re.compile(r"\bnot\s+in\b", re.IGNORECASE), "not in", "not in is no operator"),
    (re.compile(r"(?<=\s)and(?=\s)", re.IGNORECASE), "&&", "and is no operator, && is"),
    (re.compile(r"(?<=\s)or(?=\s)", re.IGNORECASE), "||", "or is no operator, || is"),
    (re.compile(r"\bnot\s+", re.IGNORECASE), "!", "not is no operator, ! is"),
    (re.compile(r"(?<!&)&(?!&)"), "&&", "& is no operator, && is"),
    (re.compile(r"(?<!\|)\|(?!\|)"), "||", "| is no operator, || is"),
    (
        re.compile(r"\b([0-9]+(?:\.[0-9]+)?[KMGTPkmgtp]i?[Bb]?)\b"),
        r'quantity("\1")',
        'an amount such as 1Gi is written quantity("1Gi")',
    ),
)
# Of the whole text.
_ENDS: Final = (
    (re.compile(r"^\s*(?:&&|\|\|)\s*"), "", "an operator at the start has nothing to join"),
    (re.compile(r";$"), "", "an expression has no ; at the end"),
    (_HAS_INDEX, r"has(\1.\2)", 'has() takes a field, .name, not ["name"]'),
    (_HAS_DOMAIN, r"\2 in \1", "has() takes a field, and a domain is none"),
)


def misspelt(text: str, error: str, compiler: DeviceCompiler, devices: Devices) -> Mistake:
    """Return why an expression does not compile, and how else it may be written."""
    if error in (TOO_LONG, TOO_COMPLEX):
        return Mistake(MistakeKind.SYNTAX, f"the expression is {error[0].lower()}{error[1:]}")
    try:
        fixes = list(Trees(compiler.parse(text), devices).fixes())
    except CompileError:
        fixes = list(_texts(text))
    except RecursionError:
        fixes = []
    places = list(_PLACE.finditer(error))
    said = (places[0][3] if places else error).partition(" expecting ")[0]
    options = tuple(
        Option(
            RepairKind.SYNTAX, fix.text, {}, fix.expression, _cause(places, fix.fact, fix.offset)
        )
        for fix in fixes
        if fix.expression != text
    )
    cause = options[0].cause if options else _cause(places, said)
    return Mistake(MistakeKind.SYNTAX, cause, options, text)


def respelt(
    text: str, error: str, compiler: DeviceCompiler, devices: Devices, *, derived: bool
) -> Option | None:
    """Return the first other way to write an expression that compiles, whatever it matches."""
    for option in misspelt(text, error, compiler, devices).options:
        found = evaluator_of(option.whole, compiler, derived=derived)
        if isinstance(found, ExpressionEvaluator):
            return option
    return None


def _cause(places: Sequence[re.Match[str]], fact: str, offset: int = -1) -> str:
    """Return what is wrong, with the place of the error that is nearest to the wrong part."""
    line, where = " ".join(fact.split()), ""
    if places:
        near = min(places, key=lambda each: abs(int(each[2]) - 1 - offset) if offset >= 0 else 0)
        where = f" at {near[1]}:{near[2]}"
    return fitting(
        f"the expression does not compile{where}: {line}", f"does not compile{where}: {line}", line
    )


# --- texts ----------------------------------------------------------------------------------


def _texts(text: str) -> Iterator[Respelt]:
    """Yield the text with everything corrected that other languages write otherwise."""
    found, facts = text, []
    unquoted = outside_strings(text, _UNQUOTED, r'\1"\2"')
    if unquoted != text:
        found = unquoted
        facts.append("a text is not in quotes")
    for pattern, new, fact in _SPELLINGS:
        outside = outside_strings(found, pattern, new)
        if outside != found:
            found = outside
            facts.append(fact)
    while (shorter := found.rstrip().removesuffix("&&").removesuffix("||")) != found:
        if shorter != found.rstrip():
            facts.append("an operator at the end has nothing to join")
        found = shorter
    for pattern, new, fact in _ENDS:
        if pattern.search(found):
            found = pattern.sub(new, found)
            facts.append(fact)
    closed = _closed(found)
    if closed != found:
        facts.append("a bracket or quote is not closed")
    if facts:
        yield Respelt(facts[0], f"write {_short(closed)}", closed)


def _closed(text: str) -> str:
    """Return a text with its open brackets and quotes closed, and brackets too many removed."""
    plain = STRING.sub(lambda found: "s" * len(found[0]), text)
    for quote in ('"', "'"):
        if plain.count(quote) == 1:
            return _closed(text + quote)
    waiting, kept = [], []
    pairs = {")": "(", "]": "["}
    for character, shown_character in zip(text, plain, strict=True):
        if shown_character in "([":
            waiting.append(shown_character)
        elif shown_character in ")]":
            if not waiting or waiting[-1] != pairs[shown_character]:
                continue
            waiting.pop()
        kept.append(character)
    closing = {"(": ")", "[": "]"}
    return "".join(kept) + "".join(closing[each] for each in reversed(waiting))


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"
