"""Brings scores to the common scale."""

from __future__ import annotations

SCORE_MAX = 100


def proportional(scores: list[int]) -> list[int]:
    """Return the scores as parts of the largest."""
    largest = max(scores, default=0)
    if largest == 0:
        return scores
    return [SCORE_MAX * score // largest for score in scores]


def proportional_reversed(scores: list[int]) -> list[int]:
    """Return how far below the largest the scores are; where all are 0 all are best."""
    largest = max(scores, default=0)
    if largest == 0:
        return [SCORE_MAX] * len(scores)
    return [SCORE_MAX - SCORE_MAX * score // largest for score in scores]
