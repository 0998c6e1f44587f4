"""A diagnosis as lines of text and as a tree for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from mooring.api.quantity import Quantity
from mooring.insight.diagnosis.changes import DropClassSelector, DropConstraint, FreeClaim
from mooring.insight.diagnosis.diagnosis import Diagnosis
from mooring.insight.diagnosis.fixes import Fix, asks_for_nothing
from mooring.insight.diagnosis.funnel import STAGES, Funnel
from mooring.insight.diagnosis.values import values_text
from mooring.insight.diagnosis.words import member_text, member_texts, refusal_text, text_of
from mooring.insight.wording import counted

CLAIMS_SHOWN_MAX = 8


def lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Give the lines that tell a diagnosis, without the node's name."""
    if diagnosis.message:
        yield diagnosis.message
    for pool in diagnosis.pools:
        reason = f": {pool.reason}" if pool.reason else ""
        yield f"pool {pool.pool} is {pool.state}{reason}; none of its devices is given away"
    for alike in _alike(diagnosis.funnels):
        yield from _funnel(alike, diagnosis)
    yield from _conflict(diagnosis)
    yield from _fixes(diagnosis)


def _alike(funnels: Iterable[Funnel]) -> Iterable[list[Funnel]]:
    """Return the funnels together that differ in nothing but the name of the request."""
    found: dict[Funnel, list[Funnel]] = {}
    for funnel in funnels:
        found.setdefault(replace(funnel, request=""), []).append(funnel)
    return found.values()


def _funnel(alike: list[Funnel], diagnosis: Diagnosis) -> Iterator[str]:
    funnel, *others = alike
    of = f" of claim {funnel.claim}" if len(diagnosis.situation.claims) > 1 else ""
    wanted = "all" if funnel.wanted is None else f"{funnel.wanted:,}"
    names = ", ".join(each.request for each in alike)
    noun, each = ("requests", " each") if others else ("request", "")
    yield f"{noun} {names}{of}: {wanted} wanted{each}"
    steps = [f"{funnel.in_fleet:,} in the fleet"]
    before = funnel.in_fleet
    for stage, count in zip(STAGES, funnel.counts, strict=True):
        # A question that keeps no device out is not worth a word, but for the first.
        if count != before or stage == STAGES[0]:
            steps.append(f"{count:,} {stage}")
        before = count
    yield f"  devices: {' → '.join(steps)}"
    if funnel.nearest is not None:
        refusal = refusal_text(funnel.nearest.refusal)
        yield f"  nearest: {funnel.nearest.device} {refusal}"


def _conflict(diagnosis: Diagnosis) -> Iterator[str]:
    members = diagnosis.conflict.members
    if not members:
        return
    if len(members) == 1:
        yield "impossible by itself:"
    else:
        known = "" if diagnosis.conflict.is_minimal else " (not all may be needed)"
        yield f"impossible together{known}:"
    for text in member_lines(diagnosis):
        yield f"  {text}"
    if diagnosis.around.holders_left_out:
        more = counted(diagnosis.around.holders_left_out, "more claim")
        yield f"  {more} with devices of these pools, which were not looked at one by one"


def member_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the members of the conflict, constraints with the values that they compare."""
    situation, around = diagnosis.situation, diagnosis.around
    found: list[str] = []
    for kind, members in groupby(diagnosis.conflict.members, type):
        texts = member_texts(alike := list(members), situation, around)
        if kind is DropConstraint:
            shown = [values_text(diagnosis.values, constraint) for constraint in alike]
            texts = [f"{text} ({values})" for text, values in zip(texts, shown, strict=True)]
        elif kind is FreeClaim and len(texts) > CLAIMS_SHOWN_MAX:
            more = len(texts) - CLAIMS_SHOWN_MAX
            texts = [*texts[:CLAIMS_SHOWN_MAX], f"{counted(more, 'more claim')} with such devices"]
        found += texts
    return found


def _fixes(diagnosis: Diagnosis) -> Iterator[str]:
    tried = counted(diagnosis.trials, "trial")
    fixes = useful_fixes(diagnosis)
    if fixes:
        yield "any of these would make it fit, each was tried:"
        for fix in fixes:
            yield f"  {fix_text(fix, diagnosis)}"
    elif diagnosis.trials:
        yield f"no fix of one or two changes was found in {tried}"
    if diagnosis.ended_by:
        yield f"the diagnosis was ended: {diagnosis.ended_by}; there may be more fixes"
    elif diagnosis.trials_given_up:
        given_up = counted(diagnosis.trials_given_up, "trial")
        yield f"{given_up} took too long; there may be more fixes"


def useful_fixes(diagnosis: Diagnosis) -> list[Fix]:
    """Return the fixes worth telling, the nearest first."""
    fixes = [fix for fix in diagnosis.fixes if not asks_for_nothing(fix, diagnosis.situation)]
    # What a class is for is not the business of one claim, unless nothing else helps.
    return [fix for fix in fixes if not _changes_class(fix)] or fixes


def _changes_class(fix: Fix) -> bool:
    return any(isinstance(change, DropClassSelector) for change in fix.changes)


def fix_text(fix: Fix, diagnosis: Diagnosis) -> str:
    """Return a fix on one line."""
    return ", and ".join(text_of(change, diagnosis.situation) for change in fix.changes)


def tree(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as JSON holds it, with the texts of its members and fixes."""
    return {
        "node": diagnosis.situation.node.metadata.name,
        "message": diagnosis.message,
        "nodeOnly": diagnosis.node_only,
        "pools": _plain(diagnosis.pools),
        "requests": _plain(diagnosis.funnels),
        "conflict": {
            "isMinimal": diagnosis.conflict.is_minimal,
            "members": [
                {
                    "text": member_text(member, diagnosis.situation, diagnosis.around),
                    "withoutIt": _plain(member),
                }
                for member in diagnosis.conflict.members
            ],
        },
        "fixes": [
            {"text": fix_text(fix, diagnosis), "changes": _plain(fix.changes)}
            for fix in diagnosis.fixes
        ],
        "trials": diagnosis.trials,
        "trialsGivenUp": diagnosis.trials_given_up,
        "endedBy": diagnosis.ended_by,
    }


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=_text)


def _text(value: object) -> str:
    assert isinstance(value, Quantity)
    return str(value)
