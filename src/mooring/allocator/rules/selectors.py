"""Selectors: CEL expressions over devices, each evaluated once for each distinct content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mooring.allocator.bits import bits
from mooring.api.resource.v1 import DeviceAttribute
from mooring.cel.device import Compiled, DeviceCompiler
from mooring.cel.fleet import Content
from mooring.cel.results import with_hint

ANSWERS_MAX = 1_000_000


class SelectorFault(NamedTuple):
    """Why a selector has no answer for a device."""

    selector: int  # which one
    text: str
    is_compile: bool


class Selected(NamedTuple):
    """The devices that all selectors match, and those for which one has no answer."""

    yes: int
    faults: Mapping[int, SelectorFault]


Match = bool | str  # whether it matches, or why there is no answer


class Expressions:
    """Compiles and evaluates expressions; answers are kept by text and content."""

    def __init__(self, compiler: DeviceCompiler) -> None:
        self._compiler = compiler
        self._matches: dict[str, dict[Content, Match]] = {}
        self._derived: dict[str, dict[Content, DeviceAttribute | str]] = {}
        self._answers = 0

    def selected(self, expressions: Iterable[str], contents: Sequence[Content]) -> Selected:
        """Return which contents, by position, match all the expressions; in order, lazily."""
        yes = (1 << len(contents)) - 1
        faults: dict[int, SelectorFault] = {}
        for index, expression in enumerate(expressions):
            if not yes:
                break
            compiled = self._compiler.compile(expression)
            if compiled.error is not None:
                fault = SelectorFault(index, compiled.error, is_compile=True)
                faults |= dict.fromkeys(bits(yes), fault)
                return Selected(0, faults)
            known = self._matches.setdefault(expression, {})
            for position in bits(yes):
                match = known.get(contents[position])
                if match is None:
                    match = self._match(compiled, contents[position], known)
                if match is not True:
                    yes ^= 1 << position
                    if match is not False:
                        faults[position] = SelectorFault(index, match, is_compile=False)
        return Selected(yes, faults)

    def derived(self, expression: str, content: Content) -> DeviceAttribute | str:
        """Return the attribute that an expression gives for a content, or why it gives none."""
        known = self._derived.setdefault(expression, {})
        found = known.get(content)
        if found is None:
            compiled = self._compiler.compile(expression, kind="derived")
            answer = content.evaluate(compiled)
            assert answer.error is not None or isinstance(answer.value, DeviceAttribute)
            found = known[content] = answer.value if answer.error is None else answer.error
            self._count()
        return found

    def derived_compile_error(self, expression: str) -> str | None:
        """Return why a derived attribute's expression cannot be compiled, or None."""
        return self._compiler.compile(expression, kind="derived").error

    def _match(self, compiled: Compiled, content: Content, known: dict[Content, Match]) -> Match:
        answer = content.evaluate(compiled)
        match: Match = with_hint(answer.error) if answer.error is not None else bool(answer.value)
        known[content] = match
        self._count()
        return match

    def _count(self) -> None:
        """Forget all answers when there are too many; they can be had again."""
        self._answers += 1
        if self._answers > ANSWERS_MAX:
            self._matches.clear()
            self._derived.clear()
            self._answers = 0
