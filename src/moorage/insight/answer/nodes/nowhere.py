"""Nodes that lack different things: one sentence that covers them all.

    apart   one request finds its devices on some nodes only, another on others: no node has both
    short   all nodes have too few devices for one request, each for a reason of its own

A single node as an example would hide that the others do not help either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from moorage.insight.answer.devices.requests import device_findings
from moorage.insight.answer.devices.shortages import OF_CLASS, DeviceCase, Shortage
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.holders import short_name
from moorage.insight.explain.funnel import FITTING, FREE, SELECTED, TOLERATED, Funnel
from moorage.insight.explain.situation import RequestPath
from moorage.insight.explain.verdicts import NodeVerdict, trouble_of
from moorage.insight.messages import CAUSE_LENGTH_MAX, counted, listed

NODES_SHOWN_MAX: Final = 2
VERDICTS_MAX: Final = 6  # whose findings are joined
_LEVELS: Final = (OF_CLASS, SELECTED, FITTING)


class _Seat(NamedTuple):
    """A request, and the nodes that have devices for it."""

    name: str
    class_name: str
    nodes: frozenset[str]


def nowhere_findings(case: Case, verdicts: Sequence[NodeVerdict]) -> Iterator[Finding]:
    """Find what covers nodes that lack different things; `verdicts` come nearest first."""
    diagnosed = [
        (verdict, DeviceCase(case, verdict.diagnosis))
        for verdict in verdicts
        if verdict.diagnosis is not None and not verdict.diagnosis.message
    ]
    if len(diagnosed) < 2:
        return
    if len(diagnosed) == len(verdicts):
        for level in _LEVELS:
            torn = _disjoint(_seats(diagnosed, level))
            if torn:
                yield Finding(_apart(torn, level), tuple(_for_apart(case, diagnosed, torn, level)))
                return
    yield from _each_short(case, diagnosed)


# --- no node has both -----------------------------------------------------------------------


def _seats(diagnosed: Sequence[tuple[NodeVerdict, DeviceCase]], level: int) -> list[_Seat]:
    """Return for each request without alternatives the nodes that pass a question for it."""
    nodes: dict[RequestPath, set[str]] = {}
    for verdict, devices in diagnosed:
        for place, funnel in devices.places():
            if place.alternative is None:
                found = nodes.setdefault(place, set())
                if funnel.counts[level] >= _goal(funnel, level):
                    found.update(verdict.nodes)
    first = diagnosed[0][1]
    situation = first.diagnosis.situation
    return [
        _Seat(
            first.request_text(place), situation.details(place).device_class_name, frozenset(found)
        )
        for place, found in nodes.items()
    ]


def _goal(funnel: Funnel, level: int) -> int:
    return 1 if level == OF_CLASS else funnel.wanted or 1


def _disjoint(seats: Sequence[_Seat]) -> list[_Seat]:
    """Return requests that have no node in common; none if one of them has no node at all."""
    if len(seats) < 2 or not all(seat.nodes for seat in seats):
        return []
    for number, one in enumerate(seats):
        for other in seats[number + 1 :]:
            if not one.nodes & other.nodes:
                return [one, other]
    common = frozenset.intersection(*(seat.nodes for seat in seats))
    return [] if common else list(seats)


def _apart(torn: Sequence[_Seat], level: int) -> str:
    names = _names(torn, level)
    end = "no node has both" if len(torn) == 2 else "no node has all"
    what = "" if level == OF_CLASS else "free devices" if level == FITTING else "such devices"
    for shown_max in (NODES_SHOWN_MAX, 1):
        wheres = [listed(sorted(seat.nodes), shown_max=shown_max) for seat in torn]
        if level == OF_CLASS:
            parts = [
                f"{name} is on {where} only" for name, where in zip(names, wheres, strict=True)
            ]
        else:
            parts = [
                f"{name} finds {what} on {where} only"
                for name, where in zip(names, wheres, strict=True)
            ]
        cause = f"{', '.join(parts)}: {end}"
        if len(cause) <= CAUSE_LENGTH_MAX:
            return cause
    return f"no node has devices for {' and '.join(names)}: each has some of them only"


def _names(torn: Sequence[_Seat], level: int) -> list[str]:
    classes = [seat.class_name for seat in torn]
    if level == OF_CLASS and len(set(classes)) == len(classes):
        return [f"class {name}" for name in classes]
    return [seat.name for seat in torn]


def _for_apart(
    case: Case,
    diagnosed: Sequence[tuple[NodeVerdict, DeviceCase]],
    torn: Sequence[_Seat],
    level: int,
) -> Iterator[Proposal]:
    if level == FITTING:
        yield from _joined(case, [verdict for verdict, _ in diagnosed])
    classes = " and of class ".join(dict.fromkeys(seat.class_name for seat in torn))
    yield Proposal(
        f"add a node with devices of class {classes}, or split the pod: what needs the one runs "
        "where that is",
        FixRank.HARDWARE,
    )


# --- each node has too few ------------------------------------------------------------------


def _each_short(
    case: Case, diagnosed: Sequence[tuple[NodeVerdict, DeviceCase]]
) -> Iterator[Finding]:
    """Find one request for which every node that has such devices has too few."""
    found: list[tuple[NodeVerdict, DeviceCase, Shortage]] = []
    for verdict, devices in diagnosed:
        groups = devices.shortages()
        if verdict.is_behind or any(group[0].stage <= OF_CLASS for group in groups):
            continue  # Other nodes are nearer.
        if len(groups) != 1 or len(groups[0]) != 1 or groups[0][0].stage not in (FREE, TOLERATED):
            return
        found.append((verdict, devices, groups[0][0]))
    places = {short.place for *_, short in found}
    stages = {short.stage for *_, short in found}
    if len(found) < 2 or len(places) != 1 or len(stages) < 2:
        return
    yield Finding(_short_cause(found), tuple(_joined(case, [verdict for verdict, *_ in found])))


def _short_cause(found: Sequence[tuple[NodeVerdict, DeviceCase, Shortage]]) -> str:
    short = found[0][2]
    most = max(min(each.funnel.free, each.funnel.tolerated) for *_, each in found)
    wanted = counted(short.wanted, "device")
    start = f"{short.name} wants {wanted} of class {short.class_name}, no node has more than {most}"
    reasons = [_reason(verdict, devices, each) for verdict, devices, each in found]
    for shown_max in (len(reasons), 2):
        for head in (start, f"{short.name} wants {wanted}, no node has more than {most}"):
            more = len(reasons) - shown_max
            rest = f" and {more} more" if more > 0 else ""
            cause = f"{head}: {'; '.join(reasons[:shown_max])}{rest}"
            if len(cause) <= CAUSE_LENGTH_MAX:
                return cause
    return f"{start}: {reasons[0]}"


def _reason(verdict: NodeVerdict, devices: DeviceCase, short: Shortage) -> str:
    """Return what keeps devices of a node from a request."""
    node = verdict.nodes[0]
    if short.stage == TOLERATED:
        tainted = short.funnel.free - short.funnel.tolerated
        name = short.device_name.rpartition("/")[2]
        what = name if tainted == 1 and name else counted(tainted, "device")
        return f"on {node} {what} {'is' if tainted == 1 else 'are'} tainted"
    holders = devices.diagnosis.obstacles.holders
    users = list(dict.fromkeys(short_name(devices.case, *key) for key in holders))
    return f"on {node} {listed(users, shown_max=1)} {'has' if len(users) == 1 else 'have'} devices"


def _joined(case: Case, verdicts: Sequence[NodeVerdict]) -> Iterator[Proposal]:
    """Yield what would help on each of the nodes, once."""
    found: dict[str, Proposal] = {}
    for verdict in verdicts[:VERDICTS_MAX]:
        if verdict.diagnosis is not None:
            for finding in device_findings(case, verdict.diagnosis):
                for proposal in finding.proposals:
                    found.setdefault(proposal.text, proposal)
    yield from found.values()


# --- nodes that are not well ----------------------------------------------------------------


def with_troubled_nodes(cause: str, verdicts: Sequence[NodeVerdict]) -> str:
    """Return a cause with the node that has the devices but is not well, if there is room."""
    if not verdicts or trouble_of(verdicts[0]):
        return cause
    for verdict in verdicts:
        trouble = trouble_of(verdict)
        if trouble and verdict.diagnosis is None:
            line = f"{cause}; node {verdict.nodes[0]} {trouble}"
            return line if len(line) <= CAUSE_LENGTH_MAX else cause
    return cause
