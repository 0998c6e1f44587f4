"""Expressions that parse but do not check, and the expressions that they mean.

capacity["d"].memory >= "40Gi"              ─► ….memory.compareTo(quantity("40Gi")) >= 0
device.attributes["d/productName"] == "x"   ─► device.attributes["d"].productName == "x"
productName.startswith("x")                 ─► productName.startsWith("x")
[device.attributes["d"].numa, 7]            ─► [device.attributes["d"].numa, dyn(7)]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.semver import Version
from moorage.cel.lang import ast
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.comparisons import FLIPPED, ORDER, Comparison, comparison_of
from moorage.insight.expressions.paths import device_paths, meant_by
from moorage.insight.expressions.published_devices import (
    similar_fields,
    written,
)
from moorage.insight.expressions.syntax import (
    DEVICE,
    FIELDS,
    MAPS,
    DeviceField,
    readings,
    shown,
    walk,
    write,
)
from moorage.insight.expressions.values import (
    compared as compared_text,
)
from moorage.insight.expressions.values import (
    in_likely_unit,
    literal,
    quantity_of,
    type_name,
    version_of,
    with_article,
)
from moorage.kit.similar_names import nearest

FUNCTIONS: Final = (
    *("startsWith", "endsWith", "contains", "matches", "lowerAscii", "upperAscii", "size"),
    *("compareTo", "isGreaterThan", "isLessThan", "quantity", "semver", "includes", "orValue"),
    *("exists", "all", "string", "int", "has", "indexOf", "isQuantity", "isSemver", "split"),
)
AMOUNT_DIGITS_MAX: Final = 20
WORDS: Final = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null"}
STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
_HYPHENATED: Final = re.compile(r"\.([A-Za-z_]\w*(?:-[A-Za-z_]\w*)+)\b")


class Respelt(NamedTuple):
    """An expression in another spelling."""

    fact: str  # what is wrong with the given one
    text: str  # what to do
    expression: str
    offset: int = -1  # of the part that is wrong, if that is known


class Trees:
    """The tree of an expression, and the ways in which it may be meant."""

    def __init__(self, parsed: ast.ParsedAST, devices: Devices) -> None:
        self._root = parsed.expr
        self._macro_calls = parsed.macro_calls
        self._source = parsed.source
        self._offsets = {node.id: node.offset for node in walk(parsed.expr)}
        self._devices = devices
        self._carriers = devices.carriers

    def fixes(self) -> Iterator[Respelt]:
        """Yield trees in which one kind of mistake is corrected, as texts."""
        yield from self._hyphens()
        yield from self._paths()
        yield from self._optionals()
        yield from self._comparisons()
        yield from self._functions()
        yield from self._words()
        yield from self._negations()
        yield from self._patterns()
        yield from self._memberships()
        yield from self._elements()

    def _elements(self) -> Iterator[Respelt]:
        """Yield lists whose other elements are as dyn as attributes: all must have one type."""
        for node in walk(self._root):
            if not isinstance(node, ast.CreateList):
                continue
            reads = {path.node.id for path in device_paths(node)}
            others = [each for each in node.elements if each.id not in reads]
            instead = {each.id: f"dyn({self._text(each)})" for each in others}
            if instead and len(others) < len(node.elements):
                old = ", ".join(map(self._text, others))
                new = ", ".join(instead.values())
                fact = f"elements of a list have one type: an attribute is dyn, and {old} is not"
                yield self._fix(fact, f"write {new} instead of {old}", instead)

    def _memberships(self) -> Iterator[Respelt]:
        """Yield `x in "a"` as `x == "a"` or `x.contains("a")`."""
        for node in walk(self._root):
            match node:
                case ast.Call(function="@in", args=(left, ast.Literal(value=str(text)))):
                    subject = self._text(left)
                    for new in (
                        f"{subject} == {shown(text)}",
                        f"{subject}.contains({shown(text)})",
                    ):
                        fact = f"in takes a list, and {shown(text)} is a string"
                        yield self._fix(fact, f"use {new}", {node.id: new})

    def _fix(self, fact: str, said: str, instead: Mapping[int, str]) -> Respelt:
        offset = next((self._offsets.get(each, -1) for each in instead), -1)
        return Respelt(fact, said, write(self._root, self._macro_calls, instead), offset)

    def _text(self, node: ast.Expr) -> str:
        return write(node, self._macro_calls)

    def _hyphens(self) -> Iterator[Respelt]:
        for found in _HYPHENATED.finditer(self._source):
            name = found[1]
            new = outside_strings(self._source, re.compile(rf"\.{name}\b"), f'["{name}"]')
            fact = f".{name} is a subtraction to CEL"
            yield Respelt(fact, f'write ["{name}"] instead of .{name}', new)

    def _paths(self) -> Iterator[Respelt]:
        """Yield fields that are read in another way than by domain and name."""
        for path in device_paths(self._root):
            meant = meant_by(path, self._carriers)
            if path.is_regular:
                read = DeviceField(*path.keys) if len(path.keys) == 3 else None
                if read is None or read.field != "capacity" or self._carriers[read]:
                    continue
                meant = [*similar_fields(read, self._carriers)]
            for field in meant:
                new = field if isinstance(field, str) else written(field)
                old = self._text(path.node)
                is_unknown = path.root == DEVICE and path.keys[0] not in (*MAPS, *FIELDS)
                if is_unknown:
                    fact = f"device.{path.keys[0]} does not exist: did you mean {new}?"
                elif path.root != DEVICE:
                    fact = f"there is no variable {path.root}: did you mean {new}?"
                elif isinstance(field, DeviceField):
                    noun = "capacity" if field.field == "capacity" else "attribute"
                    fact = f'{old}: {noun} {field.name} is in domain "{field.domain}"'
                else:
                    fact = f"{old} does not exist: did you mean {new}?"
                yield self._fix(fact, f"use {new} instead of {old}", {path.node.id: new})

    def _optionals(self) -> Iterator[Respelt]:
        """Yield `.?x == 1` as `has(….x) && ….x == 1`."""
        for node in walk(self._root):
            compared = comparison_of(node, self._macro_calls)
            if compared is None or not _is_optional(compared.subject):
                continue
            read = next(readings(compared.subject)).read
            if read.name and not compared.is_called:
                same = f"{written(read)} {compared.relation} {self._other(compared)}"
                new = f"has({written(read)}) && {same}"
                fact = f".?{read.name} is an optional, not a value: it needs orValue() or has()"
                yield self._fix(fact, f"use {new}", {node.id: new})

    def _other(self, compared: Comparison) -> str:
        texts = [literal(each.value) for each in compared.literals]
        return f"[{', '.join(texts)}]" if compared.relation == "in" else texts[0]

    # --- comparisons ----------------------------------------------------------------------------

    def _comparisons(self) -> Iterator[Respelt]:
        """Yield comparisons with quantities and versions as CEL makes them."""
        for node in walk(self._root):
            compared = comparison_of(node, self._macro_calls)
            if compared is None or compared.relation not in (*FLIPPED, "in"):
                continue
            reading = next(readings(compared.subject))
            values = self._values(reading.read)
            asked = compared.literal.value
            subject = self._text(compared.subject)
            made = [
                value
                for value in _typed(compared, reading.read, values)
                if compared_text(subject, compared.relation, value) != self._text(node)
            ]
            for value in made:
                kind = type_name(value)
                new = compared_text(subject, compared.relation, value)
                given = f'{compared.wraps}("{asked}")' if compared.wraps else shown(asked)
                fact = f"{reading.read.name} is {with_article(kind)}, which {new} compares"
                if compared.wraps != _function_of(value):
                    other = f"{with_article(type_name(asked))}"
                    fact = f"{reading.read.name} is {with_article(kind)}, but {given} is {other}"
                if compared.relation in ORDER and compared.wraps and not compared.is_called:
                    fact = (
                        f"{reading.read.name} is {with_article(kind)}, which compareTo() compares, "
                        f"not {compared.relation}"
                    )
                yield self._fix(fact, f"use {new}", {node.id: new})

    def _values(self, read: DeviceField) -> list[Any]:
        if not read.name:
            return []
        rows = self._devices.rows([read])
        return list(dict.fromkeys(row.first.value(read) for row in rows if row.first.has(read)))

    # --- names ------------------------------------------------------------------------------------

    def _functions(self) -> Iterator[Respelt]:
        """Yield calls of functions that exist, for those that do not."""
        for node in walk(self._root):
            if not isinstance(node, ast.Call) or not node.function.isidentifier():
                continue
            if node.function in FUNCTIONS:
                continue
            meant = nearest(node.function, FUNCTIONS)
            if meant is not None:
                new = self._text(replace(node, function=meant))
                fact = f"there is no function {node.function}(): did you mean {meant}()?"
                yield self._fix(fact, f"use {meant}() instead of {node.function}()", {node.id: new})

    def _words(self) -> Iterator[Respelt]:
        """Yield names that mean nothing as the strings or literals that they may be."""
        instead: dict[int, str] = {}
        words: list[str] = []
        for path in device_paths(self._root, any_root=True):
            name = ".".join((path.root, *path.keys))
            if path.root in WORDS and not path.keys:
                instead[path.node.id] = WORDS[path.root]
                words.append(name)
            elif path.is_foreign:
                instead[path.node.id] = shown(name)
                words.append(name)
        if instead:
            news = ", ".join(instead.values())
            fact = f"there is no variable {words[0]}: did you mean {next(iter(instead.values()))}?"
            yield self._fix(fact, f"write {news} instead of {', '.join(words)}", instead)

    def _negations(self) -> Iterator[Respelt]:
        """Yield `!x == "a"` as `x != "a"`."""
        for node in walk(self._root):
            match node:
                case ast.Call(
                    function="_==_", args=(ast.Call(function="!_", args=(operand,)), other)
                ):
                    new = f"{self._text(operand)} != {self._text(other)}"
                    yield self._fix("! binds more tightly than ==", f"use {new}", {node.id: new})

    def _patterns(self) -> Iterator[Respelt]:
        """Yield regular expressions that are none as texts to be contained."""
        for node in walk(self._root):
            match node:
                case ast.Call(
                    function="matches", target=target, args=(ast.Literal(value=str(pattern)),)
                ) if target is not None:
                    escaped = f"{self._text(target)}.matches({shown(re.escape(pattern))})"
                    fact = f"{shown(pattern)} is no regular expression"
                    said = f"write its special characters with \\: {escaped}"
                    yield self._fix(fact, said, {node.id: escaped})


def _is_optional(node: ast.Expr) -> bool:
    return isinstance(node, ast.Call) and node.function in ("_?._", "_[?_]")


def _function_of(value: Any) -> str:
    return {"quantity": "quantity", "version": "semver"}.get(type_name(value), "")


def _typed(compared: Comparison, read: DeviceField, values: Sequence[Any]) -> Iterator[Any]:
    """Yield what a literal may mean where quantities or versions are compared."""
    asked = compared.literal.value
    text = str(asked)
    is_quantity = read.field == "capacity" or any(isinstance(v, Quantity) for v in values)
    if is_quantity or compared.wraps == "quantity":
        yield from _quantities(text, [v for v in values if isinstance(v, Quantity)])
    elif any(isinstance(v, Version) for v in values) or compared.wraps == "semver":
        meant = version_of(text)
        if meant is not None:
            yield meant
    elif values and type(asked) is type(values[0]):
        yield asked


def _quantities(text: str, values: list[Quantity]) -> Iterator[Quantity]:
    """Yield the quantity that a text means; a bare number gets the likely unit."""
    if text.isdigit() and values:
        text = in_likely_unit(text[:AMOUNT_DIGITS_MAX], values)
    meant = quantity_of(text)
    if meant is not None:
        yield meant


def outside_strings(text: str, pattern: re.Pattern[str], new: str) -> str:
    """Return a text with a pattern replaced wherever it is in no string."""
    parts, end = [], 0
    for quoted in STRING.finditer(text):
        parts += [pattern.sub(new, text[end : quoted.start()]), quoted[0]]
        end = quoted.end()
    return "".join([*parts, pattern.sub(new, text[end:])])
