"""Answers as lines of text: the cause, the fixes, and the evidence for who reads on."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from moorage.insight.answer.finding import Fix
from moorage.insight.answer.groups import AnsweredPods
from moorage.insight.explain.report import evidence_lines
from moorage.insight.messages import full_name, listed

PODS_SHOWN_MAX: Final = 6


class Tone(StrEnum):
    """What a line is, for who prints it."""

    CAUSE = "cause"
    FIX = "fix"
    HINT = "hint"
    EVIDENCE = "evidence"


class Line(NamedTuple):
    """A line of an answer. Its lead says what it is about: `pod team/train: `, `  fix 1: `."""

    lead: str
    text: str
    tone: Tone = Tone.EVIDENCE

    def __str__(self) -> str:
        return f"{self.lead}{self.text}".rstrip()


def answer_lines(
    answered: AnsweredPods, *, namespace: str = "", hint: str = "", is_full: bool = False
) -> Iterator[Line]:
    """Yield the cause, the fixes with a hint how to use them, and the evidence.

    The title does not name the given namespace. Full lines leave out no name and no node.
    """
    answer = answered.answer
    yield Line(f"{answered.title(namespace)}: ", answer.cause, Tone.CAUSE)
    if len(answered.pods) > 1:
        names = [full_name(each.pod) for each in answered.pods]
        shown_max = len(names) if is_full else PODS_SHOWN_MAX
        yield Line("  pods ", listed(names, shown_max=shown_max))
    for number, fix in enumerate(answer.fixes, 1):
        kind = "" if fix.changes else " (advice)"
        yield Line(f"  fix {number}{kind}: ", _fix_text(fix, answered), Tone.FIX)
    if not answer.fixes:
        yield Line("  ", "no change was found that would help")
    if hint:
        yield Line("  ", hint, Tone.HINT)
    lines = list(evidence_lines(answered.explanation, is_full=is_full))
    if lines and lines[0]:
        yield Line("", "")
    for line in lines:
        text = line.lstrip()
        yield Line(line[: len(line) - len(text)], text)


def _fix_text(fix: Fix, answered: AnsweredPods) -> str:
    """Return what to do, and the node that a pod gets with it."""
    if not fix.node:
        return fix.marked
    first = answered.pods[0].pod.metadata.name
    whose = "gets" if len(answered.pods) == 1 else f"{first} gets"
    when = " then" if fix.waits_for else ""
    return f"{fix.marked} → {whose} node {fix.node}{when}"
