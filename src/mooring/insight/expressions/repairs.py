"""What is wrong with a selector that no device passes, and the selector that was meant.

An expression is put to the devices that come as far as it does. What it reads and no device has,
and each question that is true for none of them, is a mistake or asks for too much:

    unknown field   device.attributes["d"].productname   ─► the most similar name, or domain
    value           productName == "H100"                ─► the most similar value
    type            numaNode == "0"                      ─► a literal of the type that devices have
    list            model == "a", and model is a list    ─► model.includes("a")
    amount          memory.compareTo(quantity(…)) >= 0   ─► the largest amount that devices have
    guard           read, but some devices lack it       ─► has(…) && (…)

Nothing here is certain: whoever offers a repair tries it first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from mooring.api.quantity import Quantity
from mooring.api.semver import Version
from mooring.cel.device_values import NO_SUCH_KEY
from mooring.cel.lang import ast
from mooring.cel.lang.interpretable import Failure
from mooring.insight.expressions.comparisons import RELATIONS, Comparison, comparison_of
from mooring.insight.expressions.evaluation import ExpressionEvaluator, tallied
from mooring.insight.expressions.explanation import Atom, atoms
from mooring.insight.expressions.published_devices import (
    PublishedDevice,
    PublishedDevices,
    field_candidates,
    written,
)
from mooring.insight.expressions.syntax import DeviceField, DeviceRead, readings, shown
from mooring.insight.messages import counted, nearest

VALUES_TRIED_MAX: Final = 3
NAMES_TRIED_MAX: Final = 3


class RepairKind(IntEnum):
    """How sure it is that a repair is what the user meant; lower kinds are surer."""

    NAME = 1  # a name or domain that does not exist
    TYPE = 2  # the same value, in the type that devices have
    VALUE = 3  # a value that looks alike
    GUARD = 4  # devices without the attribute are passed over
    AMOUNT = 5  # less than was asked for
    OTHER_VALUE = 6  # a value that devices have instead


class ExpressionRepair(NamedTuple):
    """A mistake in an expression, and the expression without it."""

    kind: RepairKind
    cause: str
    text: str  # what to do
    expression: str


def repairs(
    evaluator: ExpressionEvaluator, candidates: Sequence[PublishedDevice], fleet: PublishedDevices
) -> Iterator[ExpressionRepair]:
    """Yield repairs of an expression that none of the candidates passes, the surest first."""
    search = _Search(evaluator, [each for each in candidates if each.variables is not None], fleet)
    unknown = search.unknown()
    if unknown:
        yield from search.renamed(unknown)
        return
    found = [each for atom in search.false_atoms() for each in search.for_atom(atom)]
    yield from sorted([*found, *search.guarded()], key=lambda each: each.kind)


class _Search:
    def __init__(
        self,
        evaluator: ExpressionEvaluator,
        candidates: list[PublishedDevice],
        fleet: PublishedDevices,
    ) -> None:
        self._parts = evaluator.parts
        self._root = evaluator.root
        self._candidates = candidates
        self._fleet = fleet

    # --- fields that no device has ------------------------------------------------------------

    def unknown(self) -> list[DeviceRead]:
        """Return the reads of fields that no candidate has."""
        return [
            reading
            for reading in readings(self._root)
            if reading.read.name
            and not any(_has(device, reading.read) for device in self._candidates)
        ]

    def renamed(self, unknown: list[DeviceRead]) -> Iterator[ExpressionRepair]:
        """Yield the expression with every unknown field replaced by a similar one."""
        first = unknown[0].read
        known = [self._similar(each.read) for each in unknown]
        if not all(known):
            return
        for number in range(max(map(len, known))):
            chosen = [names[min(number, len(names) - 1)] for names in known]
            instead = {
                each.node.id: _as_read(each.node, field)
                for each, field in zip(unknown, chosen, strict=True)
            }
            new = chosen[0]
            count = sum(_has(device, new) for device in self._fleet.devices)
            verb = "has" if count == 1 else "have"
            yield ExpressionRepair(
                RepairKind.NAME,
                f"{_does_not_exist(first, self._fleet)}: did you mean {_short(new, first)}? "
                f"{count:,} of {counted(len(self._fleet), 'device')} {verb} it",
                f"use {written(new)} instead of {_short(first, new)}",
                self._parts.rewritten(instead),
            )

    def _similar(self, read: DeviceField) -> list[DeviceField]:
        found = field_candidates(read, self._fleet)
        of_candidates = [
            each for each in found if any(_has(device, each) for device in self._candidates)
        ]
        return of_candidates[:NAMES_TRIED_MAX]

    # --- questions that are true for none -----------------------------------------------------

    def false_atoms(self) -> list[Atom]:
        """Return the questions that hold for no candidate, though they should for one."""
        return [
            atom
            for atom in atoms(self._root)
            if not any(self._value(atom.node, atom, d) is atom.wants_yes for d in self._candidates)
        ]

    def _value(self, node: ast.Expr, atom: Atom, device: PublishedDevice) -> Any:
        variables = atom.variables(self._parts, device.variables or {})
        return self._parts.value(node, variables)

    def for_atom(self, atom: Atom) -> Iterator[ExpressionRepair]:
        """Yield repairs of one question."""
        compared = comparison_of(atom.node)
        if compared is None or not atom.wants_yes:
            return
        values = [self._value(compared.chain, atom, device) for device in self._candidates]
        known = [value for value in values if not isinstance(value, Failure)]
        if not known:
            return
        if compared.relation in ("_==_", "@in"):
            yield from self._equal(atom, compared, known)
        elif compared.relation in RELATIONS:
            yield from self._ordered(compared, known)

    def _equal(
        self, atom: Atom, compared: Comparison, values: list[Any]
    ) -> Iterator[ExpressionRepair]:
        asked = compared.literal.value
        name = self._label(compared.chain)
        tally = Counter(shown(value) for value in values)
        of_type = _same_value(asked, values)
        if of_type is not None:
            literal, type_name = of_type
            if isinstance(literal, tuple):
                new = f"{self._parts.text(compared.chain)}.includes({shown(asked)})"
                instead = {atom.node.id: new}
                text = f"use {new}: {name} is a list"
            else:
                instead = {compared.literal.id: _literal(literal)}
                text = f"compare {name} with {_literal(literal)}, which is {type_name}"
            cause = f"{name} is {type_name}, but is compared with {shown(asked)}, {_type(asked)}"
            yield ExpressionRepair(RepairKind.TYPE, cause, text, self._parts.rewritten(instead))
            return
        cause = f"no device has {name} {shown(asked)}: it is {tallied(tally)}"
        texts = {shown(value): value for value in values if isinstance(value, str)}
        near = _nearest_value(asked, texts) if isinstance(asked, str) else None
        order = [near] if near else []
        order += [value for value, _ in tally.most_common(VALUES_TRIED_MAX) if value != near]
        for value in order:
            is_near = value == near
            if not isinstance(asked, str) or value in texts:
                yield ExpressionRepair(
                    RepairKind.VALUE if is_near else RepairKind.OTHER_VALUE,
                    f"{cause}; did you mean {near}?" if is_near else cause,
                    f"ask for {name} {value}, which {counted(tally[value], 'device')} "
                    f"{'has' if tally[value] == 1 else 'have'}",
                    self._parts.rewritten({compared.literal.id: value}),
                )

    def _ordered(self, compared: Comparison, values: list[Any]) -> Iterator[ExpressionRepair]:
        kept = [value for value in values if isinstance(value, Quantity | Version | int)]
        if not kept or len({type(value) for value in kept}) != 1:
            return
        sign = RELATIONS[compared.relation]
        best = max(kept) if sign > 0 else min(kept)
        name, asked = self._label(compared.chain), compared.literal.value
        bound = "at most" if sign > 0 else "at least"
        wanted = f"{'more than ' if compared.relation in ('_>_', '_<_') else ''}{asked}"
        literal = f'"{best}"' if compared.wraps else str(best)
        instead = {compared.literal.id: literal}
        if compared.relation in ("_>_", "_<_"):
            return  # the bound itself would not pass: nothing is known that does
        yield ExpressionRepair(
            RepairKind.AMOUNT,
            f"{name} {wanted} is asked for, but devices have {bound} {best}",
            f"ask for {name} {best} instead of {asked}",
            self._parts.rewritten(instead),
        )

    # --- devices without an attribute ---------------------------------------------------------

    def guarded(self) -> Iterator[ExpressionRepair]:
        """Yield the expression behind has(), if it fails on devices that lack a field."""
        lacking: dict[DeviceField, int] = {}
        for device in self._candidates:
            value = self._parts.value(self._root, device.variables or {})
            if isinstance(value, Failure) and NO_SUCH_KEY in value.message:
                for reading in readings(self._root):
                    if (
                        not reading.is_guarded
                        and reading.read.name
                        and not _has(device, reading.read)
                    ):
                        lacking[reading.read] = lacking.get(reading.read, 0) + 1
        if not lacking:
            return
        read, count = next(iter(lacking.items()))
        guards = " && ".join(f"has({written(each)})" for each in lacking)
        whole = self._parts.text(self._root)
        verb = "has" if count == 1 else "have"
        total = len(self._candidates)
        yield ExpressionRepair(
            RepairKind.GUARD,
            f"{count:,} of {counted(total, 'device')} {verb} no {_full(read)}, and reading it "
            "there ends the search",
            f"guard it: {guards} && …",
            f"{guards} && ({whole})",
        )

    def _label(self, chain: ast.Expr) -> str:
        for reading in readings(chain):
            if reading.read.name:
                return reading.read.name
        return self._parts.text(chain)


# --- values ---------------------------------------------------------------------------------


def _same_value(asked: Any, values: list[Any]) -> tuple[Any, str] | None:
    """Return the asked value in the type that devices have, and that type; None if not there."""
    for value in values:
        if isinstance(value, list | tuple):
            if any(element == asked and type(element) is type(asked) for element in value):
                return tuple(value), "a list"
        elif type(value) is not type(asked) and _plain_text(value) == _plain_text(asked):
            return value, _type(value)
    return None


def _plain_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _type(value: Any) -> str:
    match value:
        case bool():
            return "a bool"
        case int():
            return "an int"
        case str():
            return "a string"
        case Version():
            return "a version"
        case Quantity():
            return "a quantity"
        case list() | tuple():
            return "a list"
    return "another type"


def _literal(value: Any) -> str:
    match value:
        case Version():
            return f'semver("{value}")'
        case Quantity():
            return f'quantity("{value}")'
    return shown(value, length_max=None)


def _nearest_value(asked: str, values: dict[str, Any]) -> str | None:
    """Return the value that looks most like the asked one, or that contains it."""
    near = nearest(shown(asked), values)
    if near is not None:
        return near
    words = asked.lower().split()
    containing = [each for each in values if words and all(word in each.lower() for word in words)]
    return containing[0] if len(containing) == 1 else None


# --- fields ---------------------------------------------------------------------------------


def _has(device: PublishedDevice, read: DeviceField) -> bool:
    if device.variables is None:
        return False
    return read.name in device.variables["device"][read.field].get(read.domain, {})


def _as_read(node: ast.Expr, field: DeviceField) -> str:
    """Return a field as the node reads its own: plainly, optionally, or by has()."""
    match node:
        case ast.Select(test_only=True):
            return f"has({written(field)})"
        case ast.Call(function="_[?_]" | "_?._"):
            return written(field, optional=True)
    return written(field)


def _full(read: DeviceField) -> str:
    return f"{read.domain}/{read.name}"


def _short(read: DeviceField, other: DeviceField) -> str:
    """Return a field by name, with its domain where the other has another one."""
    if read.field != other.field:
        return written(read)
    return read.name if read.domain == other.domain else f'{read.name} in domain "{read.domain}"'


def _does_not_exist(read: DeviceField, fleet: PublishedDevices) -> str:
    noun = "attribute" if read.field == "attributes" else "capacity"
    if not fleet.carriers[DeviceField(read.field, read.domain)]:
        return f'{noun} {read.name} does not exist in domain "{read.domain}"'
    return f"{noun} {read.name} does not exist"
