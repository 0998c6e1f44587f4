"""Random damage to valid objects and to their bytes: nothing but declared errors may come of it.

A case takes an example, or the least object of some kind, changes it at random and has it read
and judged. The laws:

1. reading raises DocumentError or nothing, judging raises nothing;
2. every finding has a place;
3. an object that is accepted is, written out and read back, accepted again and stored the same.

# base: a text that is valid, or nearly so, before it is damaged
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from moorage.api.codec import encode_json
from moorage.api.documents import CORE, KUBERNETES, expand_lists, read
from moorage.api.errors import DocumentError
from moorage.api.gates import Gates, Preset
from moorage.api.timestamp import Timestamp
from moorage.validation.manifests import ManifestValidator, Verdict
from moorage.validation.strategy import Context
from soak import Outcome, Plan, Tally
from soak._damage import bases, damaged_bytes, damaged_tree, written

NOW = Timestamp(datetime(2026, 1, 1, tzinfo=UTC))


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.perf_counter()
    tally = Tally("reading", make_case)
    tally.run(plan)
    figures = {
        "cases": f"{tally.cases:,}",
        "objects accepted": f"{tally.counts['accepted']:,}",
        "objects refused": f"{tally.counts['refused']:,}",
        "unreadable": f"{tally.counts['unreadable']:,}",
        "seconds": f"{time.perf_counter() - started:.1f}",
        "worst case": tally.worst(),
        "seed": str(plan.seed),
    }
    return Outcome(figures, tuple(tally.faults.values()))


# --- one case -----------------------------------------------------------------------------


class Case(NamedTuple):
    """A damaged text, and how it is read."""

    data: bytes
    preset: Preset
    strict: bool

    def outcomes(self) -> Counter[str]:
        """Return what became of the objects of the text, or raise what must not be raised."""
        context = Context(
            gates=Gates.parse(preset=self.preset), now=NOW, extensions=not self.strict
        )
        judge = ManifestValidator(context, strict=self.strict)
        counts: Counter[str] = Counter()
        try:
            for verdict in self._verdicts(judge, self.data):
                _check_places(verdict)
                counts["accepted" if verdict.is_accepted else "refused"] += 1
                if verdict.is_accepted and verdict.stored is not None:
                    self._check_again(judge, verdict)
        except DocumentError:
            counts["unreadable"] += 1
        return counts

    def _verdicts(self, judge: ManifestValidator, data: bytes) -> Iterator[Verdict]:
        schema = KUBERNETES if self.strict else CORE
        for document in read(data, source="case", schema=schema):
            yield from map(judge.validate, expand_lists(document))

    def _check_again(self, judge: ManifestValidator, verdict: Verdict) -> None:
        text = encode_json(verdict.stored)
        try:
            (again,) = self._verdicts(judge, text)
        except DocumentError as error:
            raise AssertionError(f"stored but not read again: {error}: {text!r}") from error
        found = [finding.message for finding in again.findings]
        assert again.is_accepted, f"stored but refused when read again: {found}: {text!r}"
        if again.stored is not None:
            stored = encode_json(again.stored)
            assert stored == text, f"stored otherwise when read again: {stored!r}: {written!r}"

    def __str__(self) -> str:
        return f"preset {self.preset}, {'strict' if self.strict else 'not strict'}: {self.data!r}"


def _check_places(verdict: Verdict) -> None:
    for finding in verdict.findings:
        assert finding.line >= 1, finding
        assert finding.column >= 1, finding
        assert finding.message, finding


def make_case(seed: int, number: int) -> Case:
    """Return a case of a seed."""
    random = Random(f"{seed}/{number}")  # noqa: S311 - repeatable, not secret
    preset = random.choice(list(Preset))
    strict = random.random() < 0.3
    base = random.choice(bases())
    if base.trees and random.random() < 0.6:
        data = written(damaged_tree(random, random.choice(base.trees)), random)
        if random.random() < 0.9:
            return Case(data, preset, strict)
    else:
        data = base.data
    return Case(damaged_bytes(random, data), preset, strict)
