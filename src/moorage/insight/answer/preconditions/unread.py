"""What could not be read of a live cluster: nothing is said about it as if it were known.

Whoever may not list slices sees a cluster without devices. That no driver publishes any is not the
cause then; that nobody may look is. The scheduler may look, so its own words are passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.core.pod import POD_SCHEDULED
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.plan.unknown import unknown_of
from moorage.insight.snapshot.unread import remedy_for

WORDS_MAX: Final = 300


def unread_findings(case: Case) -> Iterator[Finding]:
    """Find what decides about the pod and could not be read."""
    found = unknown_of(case.snapshot, case.pod)
    if found is not None:
        advice = Proposal(remedy_for(found.hidden), FixRank.ADVICE)
        yield Finding(str(found), (*_words_of_scheduler(case), advice))


def _words_of_scheduler(case: Case) -> Iterator[Proposal]:
    for each in case.pod.status.conditions:
        if each.type == POD_SCHEDULED and each.status == "False" and each.message:
            theirs, sign, ours = each.message.partition("Moorage: ")
            words = ours if sign else theirs
            yield Proposal(f"see what the scheduler says: {words[:WORDS_MAX]}", FixRank.ADVICE)
