"""Seats are shared fairly among users."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.apiserver.auth.users import User
from moorage.apiserver.http.flow_control import (
    SELECTOR_ALWAYS_BYTES,
    SELECTOR_BYTES_MAX,
    FlowControl,
    RequestClass,
    Seats,
    request_class,
)
from moorage.apiserver.http.status import StatusError

ANN, BEN, ROOT = User("ann"), User("ben"), User("root", ("system:masters",))


def seats_of(turnstile: FlowControl, user: User, sort: RequestClass = RequestClass.READING) -> int:
    """Take all that a user can get."""
    count = 0
    with suppress(StatusError):
        while True:
            turnstile.take(user, sort)
            count += 1
    return count


def test_a_busy_user_leaves_seats_for_others() -> None:
    turnstile = FlowControl(Seats(reading_max=30))
    assert seats_of(turnstile, ANN) == 20
    assert seats_of(turnstile, BEN) == 7
    assert seats_of(turnstile, User("cyd")) == 2


def test_masters_go_by_the_number_of_seats() -> None:
    turnstile = FlowControl(Seats(reading_max=30))
    assert seats_of(turnstile, ANN) == 20
    assert seats_of(turnstile, ROOT) == 10


def test_reading_writing_and_watching_have_seats_of_their_own() -> None:
    turnstile = FlowControl(Seats(reading_max=3, writing_max=6, watching_max=9))
    assert [seats_of(turnstile, ANN, sort) for sort in RequestClass] == [2, 4, 6]


def test_a_refused_request_is_told_when_to_come_again() -> None:
    turnstile = FlowControl(Seats(reading_max=1))
    with turnstile.seat(ANN, RequestClass.READING):
        with pytest.raises(StatusError) as refused, turnstile.seat(BEN, RequestClass.READING):
            pass
        assert refused.value.status.code == 429
        assert refused.value.status.details is not None
        assert refused.value.status.details.retry_after_seconds == 1
    with turnstile.seat(BEN, RequestClass.READING):
        assert turnstile.refused[RequestClass.READING] == 1


def test_what_is_given_back_is_forgotten() -> None:
    turnstile = FlowControl()
    with turnstile.seat(ANN, RequestClass.WRITING):
        assert turnstile.taken(RequestClass.WRITING) == 1
    assert turnstile.taken(RequestClass.WRITING) == 0
    assert not turnstile._by_user


def watches_of(turnstile: FlowControl, user: User, selector_bytes: int) -> int:
    """Open all watches with such selectors that a user can have, up to a thousand."""
    count = 0
    with suppress(StatusError):
        while count < 1000:
            turnstile.take_watch(user, selector_bytes)
            count += 1
    return count


def test_long_selectors_of_watches_are_bounded_and_shared() -> None:
    turnstile = FlowControl()
    long = SELECTOR_BYTES_MAX // 90
    assert watches_of(turnstile, ANN, long) == 60  # two thirds
    assert 10 <= watches_of(turnstile, BEN, long) <= 20
    turnstile.leave_watch(BEN, long)
    assert watches_of(turnstile, BEN, long) == 1
    assert watches_of(turnstile, ANN, SELECTOR_ALWAYS_BYTES) == 1000


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=200), st.integers(1, 40))
def test_seats_are_bounded_and_newcomers_find_one(
    steps: list[tuple[int, bool]], seats_max: int
) -> None:
    turnstile = FlowControl(Seats(reading_max=seats_max))
    held = dict.fromkeys(range(6), 0)
    for number, takes in steps:
        user = User(str(number))
        free = seats_max - turnstile.taken(RequestClass.READING)
        if takes:
            try:
                turnstile.take(user, RequestClass.READING)
                held[number] += 1
            except StatusError:
                assert held[number] or not free  # who has none is refused only if all are taken
        elif held[number]:
            turnstile.leave(user, RequestClass.READING)
            held[number] -= 1
        assert sum(held.values()) == turnstile.taken(RequestClass.READING) <= seats_max


@pytest.mark.parametrize(
    ("method", "verb", "sort"),
    [
        ("GET", "list", RequestClass.READING),
        ("GET", "watch", RequestClass.READING),
        ("HEAD", "", RequestClass.READING),
        ("POST", "create", RequestClass.WRITING),
        ("DELETE", "deletecollection", RequestClass.WRITING),
        ("PATCH", "patch", RequestClass.WRITING),
    ],
)
def test_what_a_request_counts_as(method: str, verb: str, sort: RequestClass) -> None:
    assert request_class(method, verb) is sort
