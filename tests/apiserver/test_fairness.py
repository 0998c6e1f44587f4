"""Seats are shared fairly among users."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.apiserver.calls import User
from mooring.apiserver.fairness import Seats, Sort, Turnstile, sort_of
from mooring.apiserver.status import StatusError

ANN, BEN, ROOT = User("ann"), User("ben"), User("root", ("system:masters",))


def seats_of(turnstile: Turnstile, user: User, sort: Sort = Sort.READING) -> int:
    """Take all that a user can get."""
    count = 0
    with suppress(StatusError):
        while True:
            turnstile.take(user, sort)
            count += 1
    return count


def test_a_busy_user_leaves_seats_for_others() -> None:
    turnstile = Turnstile(Seats(reading_max=30))
    assert seats_of(turnstile, ANN) == 20
    assert seats_of(turnstile, BEN) == 7
    assert seats_of(turnstile, User("cyd")) == 2


def test_masters_go_by_the_number_of_seats() -> None:
    turnstile = Turnstile(Seats(reading_max=30))
    assert seats_of(turnstile, ANN) == 20
    assert seats_of(turnstile, ROOT) == 10


def test_reading_writing_and_watching_have_seats_of_their_own() -> None:
    turnstile = Turnstile(Seats(reading_max=3, writing_max=6, watching_max=9))
    assert [seats_of(turnstile, ANN, sort) for sort in Sort] == [2, 4, 6]


def test_a_refused_request_is_told_when_to_come_again() -> None:
    turnstile = Turnstile(Seats(reading_max=1))
    with turnstile.seat(ANN, Sort.READING):
        with pytest.raises(StatusError) as refused, turnstile.seat(BEN, Sort.READING):
            pass
        assert refused.value.status.code == 429
        assert refused.value.status.details is not None
        assert refused.value.status.details.retry_after_seconds == 1
    with turnstile.seat(BEN, Sort.READING):
        assert turnstile.refused[Sort.READING] == 1


def test_what_is_given_back_is_forgotten() -> None:
    turnstile = Turnstile()
    with turnstile.seat(ANN, Sort.WRITING):
        assert turnstile.taken(Sort.WRITING) == 1
    assert turnstile.taken(Sort.WRITING) == 0
    assert not turnstile._by_user


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=200), st.integers(1, 40))
def test_seats_are_bounded_and_newcomers_find_one(
    steps: list[tuple[int, bool]], seats_max: int
) -> None:
    turnstile = Turnstile(Seats(reading_max=seats_max))
    held = dict.fromkeys(range(6), 0)
    for number, takes in steps:
        user = User(str(number))
        free = seats_max - turnstile.taken(Sort.READING)
        if takes:
            try:
                turnstile.take(user, Sort.READING)
                held[number] += 1
            except StatusError:
                assert held[number] or not free  # who has none is refused only if all are taken
        elif held[number]:
            turnstile.leave(user, Sort.READING)
            held[number] -= 1
        assert sum(held.values()) == turnstile.taken(Sort.READING) <= seats_max


@pytest.mark.parametrize(
    ("method", "verb", "sort"),
    [
        ("GET", "list", Sort.READING),
        ("GET", "watch", Sort.READING),
        ("HEAD", "", Sort.READING),
        ("POST", "create", Sort.WRITING),
        ("DELETE", "deletecollection", Sort.WRITING),
        ("PATCH", "patch", Sort.WRITING),
    ],
)
def test_what_a_request_counts_as(method: str, verb: str, sort: Sort) -> None:
    assert sort_of(method, verb) is sort
