"""What an expression gives for a fleet, all together, for whoever wants to show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from mooring.insight.expressions.explanation import SINCE, Reason, Reasons, Valued
from mooring.insight.expressions.fleet import Fleet, FleetDevice
from mooring.insight.expressions.inquiry import TOO_COMPLEX, Answer, Inquiry, Outcome

ALIKE_MAX: Final = 3
VALUES_SHOWN_MAX: Final = 3


class Explained(NamedTuple):
    """Devices for which an expression says the same for the same reasons."""

    outcome: Outcome
    error: str
    reasons: Reasons
    devices: tuple[FleetDevice, ...]


class Survey:
    """What an expression gives for a fleet."""

    def __init__(self, inquiry: Inquiry, fleet: Fleet) -> None:
        self.inquiry = inquiry
        self.fleet = fleet
        given = inquiry.answers(fleet)
        kind = inquiry.compiled.kind
        self.is_about_values = kind != "selector" or any(a.outcome is Outcome.VALUE for a in given)
        # A bool among other values is a value, too: the expression does not ask for yes and no.
        self.answers = [_as_value(a) for a in given] if self.is_about_values else given

    @property
    def wanted(self) -> Outcome:
        """The outcome that devices are listed for."""
        return Outcome.VALUE if self.is_about_values else Outcome.MATCH

    @property
    def is_good(self) -> bool:
        """Whether a device matches or, if it is about values, all devices have one."""
        if self.inquiry.is_too_complex:
            return False
        if self.is_about_values:
            return bool(self.fleet.devices) and not self.count(Outcome.ERROR)
        return self.count(Outcome.MATCH) > 0

    @property
    def caveat(self) -> str:
        """Why Kubernetes would not take the expression, or nothing."""
        if self.inquiry.is_too_complex:
            return TOO_COMPLEX
        wrong = (a.error for a in self.answers if a.outcome is Outcome.VALUE and a.error)
        return self.inquiry.caveat or next(wrong, "")

    @property
    def costs(self) -> tuple[int, int] | None:
        """The lowest and the highest cost of an evaluation, if there was one."""
        costs = [answer.cost for answer in self.answers if answer.cost is not None]
        return (min(costs), max(costs)) if costs else None

    def count(self, outcome: Outcome) -> int:
        """Return how many devices have the outcome."""
        return sum(len(a.devices) for a in self.answers if a.outcome is outcome)

    def by_device(self) -> Iterator[tuple[FleetDevice, Answer]]:
        """Give every device with its answer, in the order of the fleet."""
        pairs = [(device, answer) for answer in self.answers for device in answer.devices]
        pairs.sort(key=lambda pair: pair[0].index)
        yield from pairs

    @cached_property
    def explained(self) -> tuple[Explained, ...]:
        """Why devices are not listed; those with the same reasons together."""
        found: dict[tuple[Outcome, str, Reasons], list[FleetDevice]] = {}
        for answer in self.answers:
            if answer.outcome is not self.wanted:
                key = (answer.outcome, answer.error, self.inquiry.reasons(answer))
                found.setdefault(key, []).extend(answer.devices)
        return tuple(Explained(*key, _sorted(devices)) for key, devices in found.items())


def _as_value(answer: Answer) -> Answer:
    if answer.outcome is Outcome.ERROR:
        return answer
    return answer._replace(outcome=Outcome.VALUE)


def _sorted(devices: Iterable[FleetDevice]) -> tuple[FleetDevice, ...]:
    return tuple(sorted(devices, key=lambda device: device.index))


# --- explanations that differ in values only ----------------------------------------------


def condensed(explained: Iterable[Explained]) -> list[Explained]:
    """Return explanations of which those that differ in values only are one if there are many."""
    alike: dict[tuple[object, ...], list[Explained]] = {}
    for one in explained:
        parts = tuple((reason.part, reason.detail) for reason in one.reasons)
        alike.setdefault((one.outcome, one.error, parts), []).append(one)
    return [
        one
        for group in alike.values()
        for one in (group if len(group) <= ALIKE_MAX else [_merged(group)])
    ]


def _merged(group: list[Explained]) -> Explained:
    reasons = tuple(
        _merged_reason([(one.reasons[i], len(one.devices)) for one in group])
        for i in range(len(group[0].reasons))
    )
    devices = _sorted(device for one in group for device in one.devices)
    return group[0]._replace(reasons=reasons, devices=devices)


def _merged_reason(weighted: list[tuple[Reason, int]]) -> Reason:
    first, _ = weighted[0]
    tallies: dict[tuple[str, str], Counter[str]] = {}
    for reason, devices in weighted:
        for valued in reason.values:
            tallies.setdefault((valued.part, valued.label), Counter())[valued.value] += devices
    return first._replace(
        # What elements of a loop had to do with it differs from device to device.
        outcome=first.outcome.partition(SINCE)[0],
        values=tuple(Valued(*names, tallied(tally)) for names, tally in tallies.items()),
    )


def tallied(tally: Counter[str], *, shown_max: int = VALUES_SHOWN_MAX) -> str:
    """Return values with the number of devices that have them, the most frequent first."""
    common = tally.most_common(shown_max)
    texts = [f"{value} ({number:,})" for value, number in common]
    if more := len(tally) - len(common):
        texts.append(f"{more:,} other values" if more > 1 else "1 other value")
    return ", ".join(texts)
