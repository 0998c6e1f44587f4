"""The questions of an expression, put to devices: which of them is a mistake, and what was meant?

A question that has the wanted result on no device is a mistake, or asks for too much:

    unknown field   device.attributes["d"].productname   ─► the most similar name, or domain
    type            numaNode == "0"                      ─► a literal of the type that devices have
    list            model == "a", and model is a list    ─► model.includes("a")
    value           productName == "H100"                ─► the most similar value
    unit            memory >= 80Gi, and devices have 80G ─► 80G
    amount          memory >= 141Gi                      ─► the largest amount that devices have
    guard           read, but some devices lack it       ─► has(…) && …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage.cel.device_values import KEY_HINT, NO_SUCH_KEY
from moorage.cel.lang import ast
from moorage.cel.lang.interpretable import Failure
from moorage.insight.expressions.answers import compared_mistakes
from moorage.insight.expressions.candidates import Devices, Row
from moorage.insight.expressions.comparisons import ITSELF, comparison_of
from moorage.insight.expressions.explanation import Atom, Parts, explain
from moorage.insight.expressions.fields import fields_with_value, irregular_path, unknown_field
from moorage.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind
from moorage.insight.expressions.mistyped import Compared
from moorage.insight.expressions.paths import device_paths, meant_by
from moorage.insight.expressions.published_devices import written
from moorage.insight.expressions.syntax import (
    MAPS,
    Aliases,
    DeviceField,
    DeviceRead,
    place,
    readings,
    shown,
)
from moorage.insight.messages import counted, fitting

ROWS_SEARCHED_MAX = 64  # for attributes that have a value
TEXT_LENGTH_MIN = 3  # of a value that tells for which attribute it is meant


class Questions:
    """The questions of one expression, and their results on rows of devices that look alike."""

    def __init__(self, parts: Parts, rows: Sequence[Row], devices: Devices) -> None:
        self.parts = parts
        self.rows = rows
        self._devices = devices
        self._values: dict[tuple[int, int], Any] = {}

    def value(self, atom: Atom, node: ast.Expr, number: int) -> Any:
        """Return the value of a part of a question on a row."""
        key = (node.id, number)
        if key not in self._values:
            variables = self.rows[number].variables
            self._values[key] = self.parts.value(node, atom.variables(self.parts, variables))
        return self._values[key]

    def holds(self, atom: Atom, number: int) -> bool:
        """Whether a question has the wanted result on a row."""
        return self.value(atom, atom.node, number) is atom.wants_yes

    # --- mistakes -----------------------------------------------------------------------------

    def mistakes(self, atom: Atom, numbers: Sequence[int]) -> Iterator[Mistake]:
        """Yield what is wrong with a question that holds on none of some rows."""
        aliases = aliases_of(atom)
        irregular = self._irregular(atom)
        if irregular is not None:
            yield irregular
            return
        unknown = [each for each in readings(atom.node, aliases) if self._is_unknown(each.read)]
        if unknown:
            yield self._unknown(atom, unknown[0], aliases)
            return
        if not any(True for _ in readings(atom.node, aliases)):
            if isinstance(self.value(atom, atom.node, numbers[0]), Failure):
                yield self.error(atom, numbers)
                return
            cause = f"{self.parts.text(atom.node)} is {shown(not atom.wants_yes)}, for any device"
            yield Mistake(MistakeKind.VALUE, fitting(cause, "a term is false for any device"))
            return
        compared = comparison_of(atom.node, self.parts.macro_calls, aliases)
        subject = atom.node if compared is None else compared.subject
        values = self._valued(atom, subject, numbers)
        if values:
            yield from compared_mistakes(
                Compared(
                    self.parts.text(subject), self._label(subject, aliases), values, atom, compared
                ),
                any(self.holds(atom, number) for number in range(len(self.rows))),
                lambda asked: self._elsewhere(asked, subject, aliases),
            )

    def _irregular(self, atom: Atom) -> Mistake | None:
        """Return the field meant by a path that is not divided into domain and name."""
        for path in device_paths(atom.node):
            domain = DeviceField(path.keys[0], path.keys[1]) if len(path.keys) > 1 else None
            if path.is_regular or domain is None or domain.field not in MAPS:
                continue
            if len(path.keys) == 2 and self._devices.carriers[domain]:
                continue
            meant = [
                each for each in meant_by(path, self._devices.carriers) if not isinstance(each, str)
            ]
            if meant:
                return irregular_path(path, meant, self.parts.text(path.node), self._devices.fleet)
        return None

    def _is_unknown(self, read: DeviceField) -> bool:
        return bool(read.domain) and not self._devices.carriers[read]

    def _unknown(self, atom: Atom, reading: DeviceRead, aliases: Aliases) -> Mistake:
        compared = comparison_of(atom.node, self.parts.macro_calls, aliases)
        having: list[DeviceField] = []
        if compared is not None and compared.relation in ("==", "in"):
            asked = compared.literal.value
            having = self._having(asked) if isinstance(asked, str) else []
        return unknown_field(reading, self._devices.carriers, self._devices.fleet, having)

    def _having(self, asked: Any) -> list[DeviceField]:
        looked_at = {each.shape: each for each in self._devices.candidates[:ROWS_SEARCHED_MAX]}
        devices = [*self._devices.candidates[:ROWS_SEARCHED_MAX], *looked_at.values()]
        return list(fields_with_value(asked, self._devices.carriers, devices))

    def _elsewhere(self, asked: Any, subject: ast.Expr, aliases: Aliases) -> Iterator[Option]:
        """Yield the attributes that have the value which is looked for in another one."""
        reading = next(readings(subject, aliases), None)
        if not isinstance(asked, str) or len(asked) < TEXT_LENGTH_MIN:
            return
        if reading is None or reading.node is not subject or not reading.read.domain:
            return
        for read in self._having(asked):
            text = f"ask for it in {read.name}, which has it, instead of {reading.read.name}"
            cause = (
                f"no device has {reading.read.name} {shown(asked)}: it is a value of {read.name}"
            )
            yield Option(RepairKind.VALUE, text, {subject.id: written(read)}, cause=cause)

    def _valued(
        self, atom: Atom, subject: ast.Expr, numbers: Sequence[int]
    ) -> list[tuple[Any, int]]:
        found = ((self.value(atom, subject, n), self.rows[n].size) for n in numbers)
        return [(value, count) for value, count in found if not isinstance(value, Failure)]

    def _label(self, subject: ast.Expr, aliases: Aliases) -> str:
        text = self.parts.text(subject)
        for reading in readings(subject, aliases):
            read = reading.read
            name = read.name or (read.field if not read.domain else written(read))
            if reading.node is subject or (reading.is_guarded and "orValue" in text):
                return name
            return text.replace(self.parts.text(reading.node), name)
        return text

    def error(self, atom: Atom, numbers: Sequence[int]) -> Mistake:
        """Return where a question fails, and why."""
        rows = [self.rows[number] for number in numbers]
        (reason, *_) = explain(self.parts, rows[0].variables)
        failing = counted(sum(row.size for row in rows), "device")
        fact = reason.detail.replace(KEY_HINT, "") or reason.outcome
        cause = fitting(
            f"{reason.part} has no value on {failing} such as {rows[0].first}: {fact}",
            f"{reason.part} has no value on {failing}: {fact}",
            f"the expression has no value on {failing}: {fact}",
        )
        return Mistake(MistakeKind.ERROR, cause, (), self.parts.text(atom.node))

    # --- devices without a field --------------------------------------------------------------

    def guards(self, atom: Atom, numbers: Sequence[int]) -> Iterator[Mistake]:
        """Yield the guard of a question that reads a field which some devices do not have."""
        lacking: dict[DeviceField, int] = {}
        for number in numbers:
            failure = self.value(atom, atom.node, number)
            if isinstance(failure, Failure) and NO_SUCH_KEY in failure.message:
                row = self.rows[number]
                for reading in readings(atom.node, aliases_of(atom)):
                    read = reading.read
                    is_missed = (
                        read.name and not reading.is_guarded and self._devices.carriers[read]
                    )
                    if is_missed and not row.first.has(read):
                        lacking[read] = lacking.get(read, 0) + row.size
        for read, count in lacking.items():
            yield self._guard(atom, read, count, sum(self.rows[n].size for n in numbers))

    def _guard(self, atom: Atom, read: DeviceField, count: int, total: int) -> Mistake:
        verb = "has" if count == 1 else "have"
        fact = f"{count:,} of {counted(total, 'device')} {verb} no"
        cause = fitting(
            f"{fact} {read.domain}/{read.name}, and reading it there ends the search",
            f"{fact} {read.name}, and reading it there ends the search",
        )
        guard = f"has({written(read)})"
        guarded = f"{guard} && {self.parts.text(atom.node, tight=True)}"
        option = Option(RepairKind.GUARD, f"guard it: {guard} && …", {atom.node.id: guarded})
        return Mistake(MistakeKind.GUARD, cause, (option,), written(read))


def aliases_of(atom: Atom) -> Aliases:
    """Return the names that stand for fields of the device around a question."""
    aliases: Mapping[str, DeviceField] = ITSELF
    for bound in atom.bindings:
        named = place(bound.value, aliases)
        inner = {name: read for name, read in aliases.items() if name != bound.name}
        aliases = inner if named is None else {**inner, bound.name: named.read}
    return aliases
