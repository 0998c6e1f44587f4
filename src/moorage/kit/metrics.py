"""Counters, gauges and histograms, in the text formats of Prometheus and OpenMetrics.

Every program exposes its metrics through this module. Names with the prefix `moorage_` are ours,
all others are Kubernetes'. A name from a KEP that shipped under another one is an alias.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"  # the content types
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
EXACT_INTEGER_MAX: Final = 2**53  # beyond it a double cannot represent every integer
EXPONENT_MIN, EXPONENT_MAX = -4, 6  # outside of these Go writes an exponent

Labels = tuple[str, ...]
Sample = tuple[str, Mapping[str, str], float]  # name suffix, labels, value


class Family:
    """A metric: its name, help text, label names and aliases."""

    type = "untyped"

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), aliases: Sequence[str] = ()
    ) -> None:
        self.name, self.text = name, text
        self.labels, self.aliases = tuple(labels), tuple(aliases)

    def samples(self) -> Iterator[Sample]:
        """Yield the name suffix, labels and value of each sample."""
        raise NotImplementedError

    def lines(self, *, openmetrics: bool = False) -> Iterator[str]:
        """Yield the lines of the exposition, for every name.

        OpenMetrics names a counter without the `_total` of its samples, and escapes more.
        """
        escaped = _escaped_label if openmetrics else _escaped
        found = [
            f"{end}{_labels_text(labels)} {number_text(value)}"
            for end, labels, value in self.samples()
        ]
        for name in (self.name, *self.aliases):
            is_total = openmetrics and self.type == "counter"
            family = name.removesuffix("_total") if is_total else name
            yield f"# HELP {family} {escaped(self.text)}"
            yield f"# TYPE {family} {self.type}"
            for line in found:
                yield f"{name}{line}"

    def _named(self, values: Labels) -> dict[str, str]:
        return dict(zip(self.labels, values, strict=True))


class Counter(Family):
    """A number that only grows."""

    type = "counter"

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), aliases: Sequence[str] = ()
    ) -> None:
        super().__init__(name, text, labels, aliases)
        self._values: dict[Labels, int] = {} if labels else {(): 0}

    def inc(self, *labels: str, amount: int = 1) -> None:
        """Add to the count."""
        self._values[labels] = self._values.get(labels, 0) + amount

    def value(self, *labels: str) -> int:
        """Return the count so far."""
        return self._values.get(labels, 0)

    def samples(self) -> Iterator[Sample]:
        """Yield one sample for each combination of labels seen."""
        for labels, value in sorted(self._values.items()):
            yield "", self._named(labels), value


class Gauge(Family):
    """A number that is read at each scrape: a gauge, or a count kept elsewhere."""

    type = "gauge"

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        look: Callable[[], Mapping[Labels, float]],
        *,
        is_counter: bool = False,
    ) -> None:
        super().__init__(name, text, labels)
        self._look = look
        if is_counter:
            self.type = "counter"

    def samples(self) -> Iterator[Sample]:
        """Yield one sample for each combination of labels that exists now."""
        for labels, value in sorted(self._look().items()):
            yield "", self._named(labels), value


class Histogram(Family):
    """The distribution of durations, or of other amounts, over buckets."""

    type = "histogram"

    def __init__(
        self, name: str, text: str, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        super().__init__(name, text, labels)
        self._buckets = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Observe one value."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._buckets) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self._buckets, value)] += 1
        self._sums[labels] += value

    def count(self, *labels: str) -> int:
        """Return how many values were observed."""
        return sum(self._counts.get(labels, ()))

    def samples(self) -> Iterator[Sample]:
        """Yield the buckets, the sum and the count for each combination of labels seen."""
        for labels, counts in sorted(self._counts.items()):
            named, total = self._named(labels), 0
            for bound, count in zip((*self._buckets, math.inf), counts, strict=True):
                total += count
                yield "_bucket", {**named, "le": number_text(bound)}, total
            yield "_sum", named, self._sums[labels]
            yield "_count", named, total


def exposition(families: Iterable[Family]) -> str:
    """Return metrics in Prometheus' text format."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def openmetrics_exposition(families: Iterable[Family]) -> str:
    """Return metrics in the text format of OpenMetrics."""
    found = (line for family in families for line in family.lines(openmetrics=True))
    return "".join(f"{line}\n" for line in (*found, "# EOF"))


def exponential_buckets(first: float, factor: float, number: int) -> tuple[float, ...]:
    """Return bounds that grow by a factor, multiplied one after the other as Go does."""
    bounds = [first]
    while len(bounds) < number:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


def exponential_buckets_between(least: float, most: float, number: int) -> tuple[float, ...]:
    """Return bounds from the least to the most that grow by the same factor."""
    factor = math.pow(most / least, 1 / (number - 1))
    return tuple(least * math.pow(factor, step) for step in range(number))


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same number.

    Integers that doubles represent exactly are written in full. Other numbers are written as Go's
    strconv does ('g', -1), and so by Kubernetes' programs.
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
