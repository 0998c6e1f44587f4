"""Counters, gauges and histograms, and the text in which Prometheus reads them.

Every program writes its metrics here and nowhere else. Names with the prefix `mooring_` are ours,
all others are Kubernetes'. Names of the KEPs that were shipped under another one are aliases.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"  # the content type
EXACT_INTEGER_MAX: Final = 2**53  # beyond it a double does not know every integer
EXPONENT_MIN, EXPONENT_MAX = -4, 6  # outside of these Go writes an exponent

Labels = tuple[str, ...]
Sample = tuple[str, Mapping[str, str], float]  # what follows the name, labels, value


class Family:
    """A name, what it means, the labels it has, and other names for it."""

    type = "untyped"

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), aliases: Sequence[str] = ()
    ) -> None:
        self.name, self.text = name, text
        self.labels, self.aliases = tuple(labels), tuple(aliases)

    def samples(self) -> Iterator[Sample]:
        """Give what follows the name, labels and a value, of each sample."""
        raise NotImplementedError

    def lines(self) -> Iterator[str]:
        """Give the lines of the exposition, for every name."""
        found = [
            f"{end}{_labels_text(labels)} {number_text(value)}"
            for end, labels, value in self.samples()
        ]
        for name in (self.name, *self.aliases):
            yield f"# HELP {name} {_escaped(self.text)}"
            yield f"# TYPE {name} {self.type}"
            for line in found:
                yield f"{name}{line}"

    def _named(self, values: Labels) -> dict[str, str]:
        return dict(zip(self.labels, values, strict=True))


class Counts(Family):
    """Something that only grows."""

    type = "counter"

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), aliases: Sequence[str] = ()
    ) -> None:
        super().__init__(name, text, labels, aliases)
        self._values: dict[Labels, int] = {} if labels else {(): 0}

    def add(self, *labels: str, amount: int = 1) -> None:
        """Count one more, or some."""
        self._values[labels] = self._values.get(labels, 0) + amount

    def value(self, *labels: str) -> int:
        """Return the count so far."""
        return self._values.get(labels, 0)

    def samples(self) -> Iterator[Sample]:
        """Give one sample for each combination of labels seen."""
        for labels, value in sorted(self._values.items()):
            yield "", self._named(labels), value


class Level(Family):
    """Something that is read whenever one looks: a gauge, or what somebody else counts."""

    type = "gauge"

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        look: Callable[[], Mapping[Labels, float]],
        aliases: Sequence[str] = (),
        *,
        is_counter: bool = False,
    ) -> None:
        super().__init__(name, text, labels, aliases)
        self._look = look
        if is_counter:
            self.type = "counter"

    def samples(self) -> Iterator[Sample]:
        """Give one sample for each combination of labels there is."""
        for labels, value in sorted(self._look().items()):
            yield "", self._named(labels), value


class Durations(Family):
    """How long something took, in buckets of seconds; or how much of something there was."""

    type = "histogram"

    def __init__(
        self, name: str, text: str, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        super().__init__(name, text, labels)
        self._buckets = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def note(self, value: float, *labels: str) -> None:
        """Note one value."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._buckets) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self._buckets, value)] += 1
        self._sums[labels] += value

    def count(self, *labels: str) -> int:
        """Return how many values were noted."""
        return sum(self._counts.get(labels, ()))

    def samples(self) -> Iterator[Sample]:
        """Give the buckets, the sum and the count for each combination of labels seen."""
        for labels, counts in sorted(self._counts.items()):
            named, total = self._named(labels), 0
            for bound, count in zip((*self._buckets, math.inf), counts, strict=True):
                total += count
                yield "_bucket", {**named, "le": number_text(bound)}, total
            yield "_sum", named, self._sums[labels]
            yield "_count", named, total


def exposition(families: Iterable[Family]) -> str:
    """Return the text that Prometheus reads."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def exponential_buckets(first: float, factor: float, number: int) -> tuple[float, ...]:
    """Return bounds, each so many times the last; Go multiplies them one after the other."""
    bounds = [first]
    while len(bounds) < number:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


def exponential_buckets_between(least: float, most: float, number: int) -> tuple[float, ...]:
    """Return so many bounds from the least to the most, each as many times the last."""
    factor = math.pow(most / least, 1 / (number - 1))
    return tuple(least * math.pow(factor, step) for step in range(number))


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same number.

    Whole numbers are written in full as far as doubles know them all. The others are written as
    Go's strconv writes them ('g', -1), which is how Kubernetes' programs write theirs.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if abs(value) <= EXACT_INTEGER_MAX and value == int(value):
        return str(int(value))
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    assert isinstance(exponent, int)
    magnitude = len(digits) + exponent - 1
    if EXPONENT_MIN <= magnitude < EXPONENT_MAX:
        return format(Decimal(repr(float(value))), "f")
    first, *rest = map(str, digits)
    mantissa = f"{first}.{''.join(rest)}" if rest else first
    return f"{'-' if sign else ''}{mantissa}e{magnitude:+03d}"


def _labels_text(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped_label(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escaped_label(value: str) -> str:
    return _escaped(value).replace('"', '\\"')
