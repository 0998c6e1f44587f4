"""Caches repeated specs: all pods or claims of a template have the same one.

Specs with equal text share one defaulted spec. Facts about that object, such as that it is valid
with certain gates, are cached, too. A fact must depend on the spec alone, and only positive facts
are cached: errors are always computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from moorage.api.codec import encode_stored_json

S = TypeVar("S", bound=Struct)

SPECS_MAX = 256
SPEC_BYTES_MAX = 4096


class RepeatedSpecs(Generic[S]):
    """The recent specs of one kind; safe for several threads."""

    def __init__(self, default: Callable[[S], S]) -> None:
        self._default = default
        self._defaulted: dict[bytes, S] = {}  # by the text of the spec as written
        self._facts: dict[int, tuple[S, set[Hashable]]] = {}  # by the id of the spec, which it has

    def __len__(self) -> int:
        return len(self._defaulted)

    def defaulted(self, spec: S) -> S:
        """Return a spec with defaults: one object for all equal specs, except large ones."""
        text = encode_stored_json(spec)
        known = self._defaulted.get(text)
        if known is None:
            known = self._default(spec)
            if len(text) <= SPEC_BYTES_MAX:
                self._remember(text, known)
                if known is not spec:  # It is written back with its defaults.
                    self._defaulted.setdefault(encode_stored_json(known), known)
        return known

    def has(self, spec: S, fact: Hashable) -> bool:
        """Return whether a fact about this object is recorded."""
        known = self._facts.get(id(spec))
        return known is not None and fact in known[1]

    def note(self, spec: S, fact: Hashable) -> None:
        """Record a fact about an object, if `defaulted` returned it."""
        known = self._facts.get(id(spec))
        if known is not None:
            known[1].add(fact)

    def _remember(self, text: bytes, spec: S) -> None:
        if len(self._defaulted) >= SPECS_MAX:
            self._defaulted.clear()
            self._facts.clear()
        self._defaulted[text] = spec
        self._facts[id(spec)] = (spec, set())
