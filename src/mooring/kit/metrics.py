"""What programs count, as Prometheus reads it; seeds' names are aliases of the shipped ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Labels = tuple[str, ...]


class Family:
    """A name, what it means, the labels it has, and other names for it."""

    type = "untyped"

    def __init__(
        self, name: str, text: str, labels: Sequence[str] = (), aliases: Sequence[str] = ()
    ) -> None:
        self.name, self.text = name, text
        self.labels, self.aliases = tuple(labels), tuple(aliases)

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Give what follows the name, labels and a value, of each sample."""
        raise NotImplementedError

    def lines(self) -> Iterator[str]:
        """Give the lines of the exposition, for every name."""
        found = [(end, _shown(labels), value) for end, labels, value in self.samples()]
        for name in (self.name, *self.aliases):
            yield f"# HELP {name} {self.text}"
            yield f"# TYPE {name} {self.type}"
            for end, labels, value in found:
                yield f"{name}{end}{labels} {value:g}"

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

    def add(self, *labels: str) -> None:
        """Count one more."""
        self._values[labels] = self._values.get(labels, 0) + 1

    def value(self, *labels: str) -> int:
        """Return the count so far."""
        return self._values.get(labels, 0)

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Give one sample for each combination of labels seen."""
        for labels, value in sorted(self._values.items()):
            yield "", self._named(labels), value


class Level(Family):
    """Something that is counted whenever one looks."""

    type = "gauge"

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        look: Callable[[], Mapping[Labels, int]],
        aliases: Sequence[str] = (),
    ) -> None:
        super().__init__(name, text, labels, aliases)
        self._look = look

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Give one sample for each combination of labels there is."""
        for labels, value in sorted(self._look().items()):
            yield "", self._named(labels), value


class Durations(Family):
    """How long something took, in buckets of seconds."""

    type = "histogram"

    def __init__(
        self, name: str, text: str, buckets_s: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        super().__init__(name, text, labels)
        self._buckets_s = tuple(buckets_s)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def note(self, seconds: float, *labels: str) -> None:
        """Note one duration."""
        counts = self._counts.setdefault(labels, [0] * (len(self._buckets_s) + 1))
        counts[bisect_left(self._buckets_s, seconds)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Give the buckets, the sum and the count for each combination of labels seen."""
        for labels, counts in sorted(self._counts.items()):
            named, total = self._named(labels), 0
            for bound, count in zip((*self._buckets_s, float("inf")), counts, strict=True):
                total += count
                yield "_bucket", {**named, "le": _bound(bound)}, total
            yield "_sum", named, self._sums[labels]
            yield "_count", named, total


def exposition(families: Iterable[Family]) -> str:
    """Return the text that Prometheus reads."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else f"{bound:g}"


def _shown(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
