"""Bridges between drivers that name the same fact differently, or write it in another type.

    gpu.nvidia.com/numa      0          ─┐
    dra.net/numaNode         0           ├─► derivedAttributes that give all requests one name
    dra.cpu/numaNodeID       0           │
    vendor.com/topology      "numa0-…"  ─┘

A bridge gives an attribute to requests whose devices lack it, or have it in another type. Names
come from the table of KEP-6072 and from likeness, values decide: a bridge is returned only if some
value then has enough devices for each request, and no expression fails on a device that it may be
evaluated for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from moorage.cel.device import DeviceCompiler
from moorage.insight.answer.devices.compared import (
    Compared,
    ComparedRequest,
    can_meet,
    derived_values,
    published_values,
)
from moorage.insight.answer.devices.shortages import DeviceCase
from moorage.insight.expressions.derived_repairs import derived_repairs, has_values
from moorage.insight.expressions.evaluation import ExpressionEvaluator, evaluator_of
from moorage.insight.expressions.published_devices import (
    PublishedDevice,
    PublishedDevices,
    qualified,
    written,
)
from moorage.insight.expressions.syntax import DeviceField, shown
from moorage.insight.messages import type_name

BRIDGES_MAX: Final = 3
SOURCES_MAX: Final = 4
_COMBINATIONS_MAX: Final = 16
_DIGITS: Final = "[0-9]+"
_SUFFIXES: Final = ("id", "number", "index", "name", "key", "node", "domain")


class Fact(NamedTuple):
    """A fact about devices, its standard attribute, and words in the names that drivers give it."""

    standard: str
    words: tuple[str, ...]


# The finest first: devices that share one fact share those after it.
FACTS: Final = (
    Fact("resource.kubernetes.io/pciBusID", ("pcibusid", "pciaddr", "pcibdf")),
    Fact("resource.kubernetes.io/pcieRoot", ("pcieroot", "pciroot", "rootcomplex", "pcielocality")),
    Fact("resource.kubernetes.io/numaNode", ("numa",)),
    Fact("resource.kubernetes.io/cpuSocketID", ("socket", "physicalpackage", "cpupackage")),
)


def fact_of(attribute: str) -> Fact | None:
    """Return the fact that an attribute's name is about."""
    name = _plain(attribute.rpartition("/")[2])
    return next((fact for fact in FACTS if any(word in name for word in fact.words)), None)


def coarser_facts(attribute: str) -> tuple[Fact, ...]:
    """Return the facts that more devices share than that of an attribute."""
    fact = fact_of(attribute)
    return () if fact is None else FACTS[FACTS.index(fact) + 1 :]


class BridgePart(NamedTuple):
    """The expression that gives an attribute to a request."""

    request: ComparedRequest  # with the values that the expression gives
    expression: str
    source: str  # the attribute that it reads; "" for an expression of the user

    @property
    def is_plain(self) -> bool:
        """Whether the expression only reads the attribute."""
        return bool(self.source) and self.expression == _read_of(self.source)

    def __str__(self) -> str:
        how = f"from {self.source}" if self.is_plain else f"as {self.expression}"
        return f"{how} in request {self.request.name}"


class Bridge(NamedTuple):
    """Derived attributes that let requests match."""

    attribute: str
    parts: tuple[BridgePart, ...]

    def __str__(self) -> str:
        return f"derive {self.attribute} {', '.join(map(str, self.parts))}"


class Surroundings(NamedTuple):
    """What expressions are compiled and evaluated with."""

    fleet: PublishedDevices
    compiler: DeviceCompiler
    has_lists: bool
    # The devices of all nodes that a request selects, and its expressions may be evaluated for.
    selected: Callable[[ComparedRequest], Sequence[PublishedDevice]]


def bridges(case: DeviceCase, found: Compared, attribute: str) -> Iterator[Bridge]:
    """Yield bridges that let an attribute match; not always that which the constraint has."""
    requests = tuple(each.with_values({}) if each.faults else each for each in found.requests)
    if attribute != found.attribute:
        requests = tuple(
            each.with_values(published_values(each.fitting, attribute)) for each in requests
        )
    details = case.diagnosis.situation.details
    around = Surroundings(
        case.case.fleet,
        case.compiler,
        found.has_lists,
        lambda request: case.chosen(details(request.place)) or request.fitting,
    )
    yield from bridges_between(requests, attribute, around)


def bridges_between(
    requests: Sequence[ComparedRequest], attribute: str, around: Surroundings
) -> Iterator[Bridge]:
    """Yield bridges for requests, those with the fewest and likeliest parts first."""
    yield from islice(_Search(attribute, around).bridges(requests), BRIDGES_MAX)


class _Search:
    def __init__(self, attribute: str, around: Surroundings) -> None:
        self._attribute = attribute
        self._around = around
        self._compiler = around.compiler
        self._has_lists = around.has_lists

    def bridges(self, requests: Sequence[ComparedRequest]) -> Iterator[Bridge]:
        """Yield the bridges for requests."""
        known = [each for each in requests if each.known]
        lacking = [each for each in requests if not each.known]
        if lacking:
            starts = [(known, lacking)]
        else:  # All have the attribute: in different types, or it does not help.
            starts = [([each], [o for o in requests if o is not each]) for each in requests]
        for settled, waiting in starts:
            for parts in islice(self._combined(waiting, settled), _COMBINATIONS_MAX):
                changed = tuple(p for p in parts if p.expression != self._read(p.request))
                if changed:
                    yield Bridge(self._attribute, changed)

    def _combined(
        self, waiting: Sequence[ComparedRequest], settled: Sequence[ComparedRequest]
    ) -> Iterator[tuple[BridgePart, ...]]:
        if not waiting:
            yield ()
            return
        first, *rest = waiting
        is_open = any(each.place.request == first.place.request for each in rest)
        for part in self._parts(first, settled):
            together = [*settled, part.request]
            # Of alternatives one is enough: they are judged when the last has its expression.
            if is_open or can_meet(together, has_lists=self._has_lists):
                for others in self._combined(rest, together):
                    yield (part, *others)

    def _parts(
        self, request: ComparedRequest, settled: Sequence[ComparedRequest]
    ) -> Iterator[BridgePart]:
        """Yield expressions for a request, in the type of the values that they should match."""
        others = (each for each in settled if each.place.request != request.place.request)
        targets = [value for each in others for value in each.known]
        for source in islice(self._sources(request, targets), SOURCES_MAX):
            plain = self._values(request, source.expression)
            samples = plain.known if plain is not None else source.samples
            for template in _templates(samples, targets, self._attribute):
                part = self._part(request, template.format(source.expression), source.name)
                if part is not None:
                    yield part

    def _part(self, request: ComparedRequest, expression: str, source: str) -> BridgePart | None:
        """Return the expression for a request, guarded where devices need it."""
        devices, compiler = self._around.selected(request), self._compiler
        if not has_values(expression, devices, compiler):
            evaluator = evaluator_of(expression, compiler, derived=True)
            if not isinstance(evaluator, ExpressionEvaluator):
                return None
            repairs = derived_repairs(evaluator, devices, self._around.fleet, compiler)
            repair = next((each for each in repairs if each.is_guard), None)
            if repair is None:
                return None
            expression = repair.expression
        valued = self._values(request, expression)
        if valued is None or not valued.known:
            return None
        return BridgePart(valued, expression, source)

    def _values(self, request: ComparedRequest, expression: str) -> ComparedRequest | None:
        evaluator = evaluator_of(expression, self._compiler, derived=True)
        if not isinstance(evaluator, ExpressionEvaluator):
            return None
        values, faults = derived_values(request.fitting, evaluator)
        return None if faults else request.with_values(values)

    # --- where the fact may be ----------------------------------------------------------------

    def _read(self, request: ComparedRequest) -> str:
        return request.expression or _read_of(self._attribute)

    def _sources(self, request: ComparedRequest, targets: list[Any]) -> Iterator[_Source]:
        """Yield what may tell the fact for the devices of a request, the likeliest first."""
        if request.known:
            name = "" if request.expression else self._attribute
            yield _Source(name, self._read(request), request.known)
            return
        ranked = []
        for field, samples in _fields(request.fitting).items():
            name = qualified(field) or ""
            rank = _rank(name, samples, self._attribute, targets)
            if rank is not None:
                ranked.append((rank, -len(samples), name, _Source(name, written(field), samples)))
        for *_, source in sorted(ranked, key=lambda each: each[:3]):
            yield source


class _Source(NamedTuple):
    name: str  # of the attribute; "" for an expression
    expression: str
    samples: list[Any]


def _fields(devices: Sequence[PublishedDevice]) -> dict[DeviceField, list[Any]]:
    """Return the attributes of devices with their values."""
    found: dict[DeviceField, list[Any]] = {}
    for device in devices:
        if device.variables is not None:
            for domain, entries in device.variables["device"]["attributes"].items():
                for name, value in entries.items():
                    found.setdefault(DeviceField("attributes", domain, name), []).append(value)
    return found


def _rank(name: str, samples: list[Any], wanted: str, targets: list[Any]) -> int | None:
    """Return how likely an attribute tells the same fact as the wanted one; 0 is likeliest."""
    own, other = _plain(name.rpartition("/")[2]), _plain(wanted.rpartition("/")[2])
    if own == other:
        return 0
    fact = fact_of(wanted)
    if fact is not None and fact_of(name) is fact:
        return 1
    if _stem(own) == _stem(other):
        return 2
    texts = [value for value in samples if isinstance(value, str)]
    if texts and _words_in(texts, wanted):
        return 3
    if set(texts).intersection(value for value in targets if isinstance(value, str)):
        return 4
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _stem(name: str) -> str:
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix) + 2:
            return name.removesuffix(suffix)
    return name


def _words_in(texts: Sequence[str], attribute: str) -> list[str]:
    """Return words of a fact that are followed by a number in all texts."""
    fact = fact_of(attribute)
    words = fact.words if fact is not None else (_stem(_plain(attribute.rpartition("/")[2])),)
    return [word for word in words if all(re.search(f"{word}[-_]?{_DIGITS}", t) for t in texts)]


def _read_of(attribute: str) -> str:
    domain, _, name = attribute.partition("/")
    return written(DeviceField("attributes", domain, name))


# --- types ----------------------------------------------------------------------------------


_CONVERSIONS: Final = {
    ("int", "string"): "string({})",
    ("bool", "string"): "string({})",
    ("string", "int"): "int({})",
    ("string", "bool"): "bool({})",
    ("string", "version"): "semver({})",
}


def _templates(samples: list[Any], targets: list[Any], attribute: str) -> Iterator[str]:
    """Yield how values are written in the type of those that they should match."""
    own = dict.fromkeys(map(type_name, samples))
    wanted = dict.fromkeys(map(type_name, targets)) or own
    for mine in own:
        for other in wanted:
            yield from _conversion(mine, other)
    texts = [value for value in samples if isinstance(value, str)]
    words = _words_in(texts, attribute) if texts else []
    for word in words:
        part = f'{{}}.find("{word}[-_]?{_DIGITS}")'
        yield part
        yield f'int({part}.find("{_DIGITS}"))'
    if texts and not words and "int" in wanted:
        yield f'int({{}}.find("{_DIGITS}"))'
    if "int" in own:
        prefixes = {re.sub(rf"{_DIGITS}$", "", t) for t in targets if isinstance(t, str)}
        yield from (f"{_braced(shown(p))} + string({{}})" for p in sorted(prefixes) if p)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _conversion(own: str, wanted: str) -> Iterator[str]:
    mine, other = own.removeprefix("list of "), wanted.removeprefix("list of ")
    if own == wanted or mine == other:
        yield "{}"
        if own != mine:
            yield "{}[0]"  # where lists are off: the first is the nearest, as KEP-6072 has it
        return
    convert = _CONVERSIONS.get((mine, other))
    if convert is None:
        return
    yield convert if own == mine else f"{{}}.map(each, {convert.format('each')})"
