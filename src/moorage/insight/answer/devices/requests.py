"""Why the claims of a pod get no devices on the nearest node: the cause, and what to do.

Each question of a request's funnel that leaves too few devices has a function. A request with
alternatives is short only if all of them are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from moorage.insight.answer.cause_kinds import CauseKind, of_kind
from moorage.insight.answer.devices.constraints import constraint_findings
from moorage.insight.answer.devices.contention import contention_findings
from moorage.insight.answer.devices.derived import derived_findings, ends_search
from moorage.insight.answer.devices.errors import error_findings
from moorage.insight.answer.devices.holders import in_use, unfit
from moorage.insight.answer.devices.pools import too_few_of_class, unusable_pools
from moorage.insight.answer.devices.selectors import faulty_selectors, unselected
from moorage.insight.answer.devices.shortages import OF_CLASS, ON_NODE, DeviceCase, Shortage
from moorage.insight.answer.devices.taints import untolerated
from moorage.insight.answer.devices.together import beyond_limit, competing
from moorage.insight.answer.finding import Case, Finding, Proposal
from moorage.insight.answer.holders import waits_for_claims
from moorage.insight.answer.nodes.replicas import fewer_pods
from moorage.insight.explain.diagnosis import Diagnosis
from moorage.insight.explain.funnel import FITTING, FREE, SELECTED, TOLERATED
from moorage.insight.messages import CAUSE_LENGTH_MAX

_FIND: Final[dict[int, Callable[[DeviceCase, Shortage], Iterator[Finding]]]] = {
    ON_NODE: too_few_of_class,
    OF_CLASS: too_few_of_class,
    SELECTED: unselected,
    FREE: in_use,
    TOLERATED: untolerated,
    FITTING: unfit,
}
_KINDS: Final[dict[int, CauseKind]] = {
    ON_NODE: CauseKind.NO_DEVICE,
    OF_CLASS: CauseKind.NO_DEVICE,
    SELECTED: CauseKind.SELECTOR,
    FREE: CauseKind.DEVICES_IN_USE,
    TOLERATED: CauseKind.DEVICE_TAINT,
    FITTING: CauseKind.DEVICE_CAPACITY,
}


def device_findings(case: Case, diagnosis: Diagnosis) -> Iterator[Finding]:
    """Find why claims get no devices on the node of a diagnosis."""
    devices = DeviceCase(case, diagnosis)
    has_ended = ends_search(devices)
    errors = [*error_findings(devices), *(derived_findings(devices) if has_ended else ())]
    if errors:
        yield from of_kind(CauseKind.EXPRESSION, errors)  # nothing else was looked at
        return
    yield from of_kind(CauseKind.POOL, unusable_pools(devices))
    yield from of_kind(CauseKind.CLAIM_LIMIT, beyond_limit(devices))
    shortages = devices.shortages()
    if diagnosis.message and not shortages:
        yield from of_kind(CauseKind.EXPRESSION, faulty_selectors(devices))
    for group in shortages:
        kind = _KINDS[group[0].stage]
        if group[0].place.alternative is None:
            yield from of_kind(kind, _FIND[group[0].stage](devices, group[0]))
        else:
            yield from of_kind(kind, [_of_alternatives(devices, group)])
    holders = list(diagnosis.obstacles.holders)
    freed = (*fewer_pods(case), *waits_for_claims(case, holders)) if holders else ()
    yield from of_kind(CauseKind.CONSTRAINT, constraint_findings(devices, freed))
    if not shortages:
        contended = list(contention_findings(devices))
        yield from of_kind(CauseKind.CONTENTION, contended or competing(devices))
    if not has_ended:
        yield from of_kind(CauseKind.EXPRESSION, derived_findings(devices))


# --- alternatives ---------------------------------------------------------------------------


def _of_alternatives(case: DeviceCase, group: Sequence[Shortage]) -> Finding:
    """Return why no alternative of a request fits."""
    causes: list[str] = []
    proposals: list[Proposal] = []
    for short in group:
        finding = next(_FIND[short.stage](case, short), None)
        if finding is not None:
            name = short.funnel.request.partition("/")[2]
            causes.append(f"{name} ({_brief(short, finding.cause)})")
            proposals += finding.proposals
    request = group[0].funnel.request.partition("/")[0]
    start = f"no alternative of request {request} fits: "
    return Finding(f"{start}{_joined(causes, CAUSE_LENGTH_MAX - len(start))}", tuple(proposals))


def _brief(short: Shortage, cause: str) -> str:
    """Return in a few words why an alternative finds too few devices."""
    funnel = short.funnel
    match short.stage:
        case 0 | 1:
            count = funnel.of_class
            return f"wants {short.wanted}, {count} there" if count else f"no {short.class_name}"
        case 3:
            return f"wants {short.wanted}, {funnel.free} of {funnel.selected} free"
        case 4:
            return f"wants {short.wanted}, {funnel.tolerated} without taint"
        case 5:
            return f"wants {short.wanted}, {funnel.fitting} with enough left"
    return cause if len(cause) <= _BRIEF_MAX else "no device matches its selectors"


_BRIEF_MAX: Final = 80


def _joined(texts: Sequence[str], length_max: int) -> str:
    """Return as many texts as there is room for, and how many more there are."""
    for shown in range(len(texts), 0, -1):
        more = len(texts) - shown
        rest = f" and {more} more" if more else ""
        text = f"{', '.join(texts[:shown])}{rest}"
        if len(text) <= length_max:
            return text
    return f"{len(texts)} were tried"
