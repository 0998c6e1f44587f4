"""Each diagnosis has its time, and all together have theirs."""

from __future__ import annotations

from moorage.insight.explain.pods import DiagnosisTimeLimit


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_every_diagnosis_has_its_own_time() -> None:
    clock = Clock()
    patience = DiagnosisTimeLimit(clock, each_s=5, all_s=60)
    first = patience.effort().interrupt
    clock.now_s += 4
    second = patience.effort().interrupt
    assert first is not None
    assert second is not None
    assert first() is None
    clock.now_s += 1
    assert first() == "no answer after 5 s"
    assert second() is None


def test_all_together_have_no_more_than_theirs() -> None:
    clock = Clock()
    patience = DiagnosisTimeLimit(clock, each_s=5, all_s=8)
    clock.now_s += 6
    late = patience.effort().interrupt
    assert late is not None
    clock.now_s += 2
    assert late() == "no answer after 2 s"
    none = patience.effort().interrupt
    assert none is not None
    assert none() == "no time left"
