"""Consumable capacity: how much a request consumes, unsuitable devices, and errors.

Amounts are written as texts; `-` is a device that is not suitable.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.allocator.errors import CapacityError
from moorage.allocator.rules.capacity import consumed_capacity
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)

INT64_MAX = 2**63 - 1
UNCOUNTABLE = "capacity request cannot be represented in the device's range arithmetic"

Policy = CapacityRequestPolicy | None


def policy(
    default: str | None = None, values: list[str] | None = None, **bounds: str
) -> CapacityRequestPolicy:
    """Return a policy; `least`, `most` and `step` make a range."""
    fields: dict[str, Any] = {}
    if bounds:
        names = {"least": "min", "most": "max", "step": "step"}
        parsed = {names[name]: Quantity.parse(text) for name, text in bounds.items()}
        fields["valid_range"] = CapacityRequestPolicyRange(**parsed)
    return CapacityRequestPolicy(
        default=None if default is None else Quantity.parse(default),
        valid_values=tuple(map(Quantity.parse, values or ())),
        **fields,
    )


def consumed(
    request: str | None, value: str, rules: Policy = None, *, fractional: bool = False
) -> str:
    """Return what a request takes of a device with one capacity."""
    requests = {} if request is None else {"memory": Quantity.parse(request)}
    capacity = {"memory": DeviceCapacity(Quantity.parse(value), rules)}
    found = consumed_capacity(requests, capacity, fractional=fractional)
    return "-" if found is None else str(found["memory"])


# --- what is taken ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "value", "rules", "expected"),
    [
        pytest.param("4Gi", "10Gi", None, "4Gi", id="without a policy it is what is asked for"),
        pytest.param("10Gi", "10Gi", None, "10Gi", id="all there is"),
        pytest.param("11Gi", "10Gi", None, "-", id="more than there is"),
        pytest.param("0", "10Gi", None, "0", id="nothing"),
        pytest.param("1500m", "2", None, "1500m", id="a fraction"),
        pytest.param(None, "10Gi", None, "10Gi", id="who does not ask takes all"),
        pytest.param(None, "10Gi", policy(), "10Gi", id="or all, if the policy has no default"),
        pytest.param(None, "10Gi", policy("1Gi"), "1Gi", id="or the default"),
        pytest.param(None, "10Gi", policy("20Gi"), "-", id="a default that is too large"),
        pytest.param("3Gi", "10Gi", policy("1Gi"), "3Gi", id="a default alone rounds nothing"),
        pytest.param("1", "10", policy(least="2"), "2", id="up to the minimum"),
        pytest.param("3", "10", policy(least="2"), "3", id="without a step as it is"),
        pytest.param("8", "10", policy(least="2", most="8"), "8", id="the maximum"),
        pytest.param("9", "10", policy(least="2", most="8"), "-", id="above the maximum"),
        pytest.param("2", "10", policy(least="2", step="3"), "2", id="on the first step"),
        pytest.param("3", "10", policy(least="2", step="3"), "5", id="up to the next step"),
        pytest.param("5", "10", policy(least="2", step="3"), "5", id="on a step"),
        pytest.param("7", "10", policy(least="2", most="7", step="3"), "-", id="a step too far"),
        pytest.param("9", "10", policy(least="2", step="3"), "-", id="more than is there"),
        pytest.param("3", "10", policy(most="8", step="2"), "-", id="no minimum, no rounding"),
        pytest.param("4", "10", policy(most="8", step="2"), "4", id="no minimum, on a step"),
        pytest.param("3", "10", policy(values=["1", "4", "8"]), "4", id="the next valid value"),
        pytest.param("8", "10", policy(values=["1", "4", "8"]), "8", id="the last valid value"),
        pytest.param("9", "10", policy(values=["1", "4", "8"]), "-", id="above all valid values"),
        pytest.param("9", "10", policy("9", values=["1"]), "9", id="the default is always valid"),
        pytest.param("1Ki", "2Ki", policy("1024", values=["1"]), "-", id="in its own notation"),
    ],
)
def test_what_a_request_takes(
    request_: str | None, value: str, rules: Policy, expected: str
) -> None:
    for fractional in (False, True):
        assert consumed(request_, value, rules, fractional=fractional) == expected


@pytest.mark.parametrize(
    ("request_", "rules", "whole", "fractional"),
    [
        ("1100m", policy(least="500m", step="250m"), "2", "1250m"),
        ("1250m", policy(least="500m", step="250m"), "2", "1250m"),
        ("100m", policy(least="500m", step="250m"), "500m", "500m"),
        ("1600m", policy(least="1", step="500m"), "2", "2"),
        ("1500m", policy(least="1", step="1"), "2", "2"),
        ("3200m", policy(least="0", most="3", step="100m"), "-", "-"),
        ("2900m", policy(least="0", most="3", step="100m"), "3", "2900m"),
    ],
)
def test_fractions_count_in_thousandths_if_the_feature_is_on(
    request_: str, rules: Policy, whole: str, fractional: str
) -> None:
    assert consumed(request_, "10", rules) == whole
    assert consumed(request_, "10", rules, fractional=True) == fractional


def test_a_range_finer_than_thousandths_counts_in_whole_numbers() -> None:
    fine = policy(least="100u", step="1")
    assert consumed("1500m", "10", fine, fractional=True) == consumed("1500m", "10", fine)


def test_a_request_for_a_capacity_that_is_not_there_makes_a_device_unsuitable() -> None:
    wanted = {"cores": Quantity.parse("1")}
    assert consumed_capacity(wanted, {}, fractional=False) is None
    capacity = {"memory": DeviceCapacity(Quantity.parse("1"))}
    assert consumed_capacity(wanted, capacity, fractional=False) is None


def test_every_capacity_is_taken_of_asked_for_or_not() -> None:
    capacity = {
        "memory": DeviceCapacity(Quantity.parse("10Gi")),
        "cores": DeviceCapacity(Quantity.parse("8"), policy("1")),
        "disk": DeviceCapacity(Quantity.parse("0")),
    }
    found = consumed_capacity({"memory": Quantity.parse("4Gi")}, capacity, fractional=False)
    assert found is not None
    assert {name: str(amount) for name, amount in found.items()} == {
        "memory": "4Gi",
        "cores": "1",
        "disk": "0",
    }
    assert consumed_capacity({}, {}, fractional=False) == {}


# --- faults -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "rules", "fractional", "error"),
    [
        ("-1", None, False, "capacity value is negative"),
        (None, policy("-1"), False, "capacity value is negative"),
        ("-3", policy(least="-2", step="1"), False, "capacity value is negative"),
        (
            "1e19",
            policy(least="0", step="1"),
            False,
            f"{UNCOUNTABLE}: request 10e18 exceeds MaxInt64",
        ),
        (
            str(INT64_MAX),
            policy(least="0", step="10"),
            False,
            f"{UNCOUNTABLE}: rounding request {INT64_MAX} up to the next step passes MaxInt64",
        ),
        (
            "1u",
            policy(least="0", step="1"),
            True,
            f"{UNCOUNTABLE}: request 1u is not a representable milli value",
        ),
        (
            "10P",
            policy(least="0", step="1m"),
            True,
            f"{UNCOUNTABLE}: request 10P is not a representable milli value",
        ),
        (
            f"{INT64_MAX}m",
            policy(least="0", step="10m"),
            True,
            (
                f"{UNCOUNTABLE}: rounding request {INT64_MAX}m up to the next step passes the "
                "milli-value range"
            ),
        ),
        ("1", policy(least="0", step="0"), False, f"{UNCOUNTABLE}: the step is zero"),
        ("1", policy(least="0", step="0"), True, f"{UNCOUNTABLE}: the step is zero"),
    ],
)
def test_an_amount_that_cannot_be_counted_is_a_fault(
    request_: str | None, rules: Policy, fractional: bool, error: str
) -> None:
    with pytest.raises(CapacityError) as raised:
        consumed(request_, "10", rules, fractional=fractional)
    assert str(raised.value) == f'capacity "memory": {error}'


def test_a_negative_capacity_is_a_fault_when_all_of_it_is_wanted() -> None:
    with pytest.raises(CapacityError, match="negative"):
        consumed(None, "-1")
    assert consumed("0", "-1") == "-"


def test_a_fault_counts_before_what_does_not_fit() -> None:
    capacity = {name: DeviceCapacity(Quantity.parse("1")) for name in ("a", "b")}
    too_much = {"a": Quantity.parse("2"), "b": Quantity.parse("-1")}
    with pytest.raises(CapacityError, match='capacity "b": capacity value is negative'):
        consumed_capacity(too_much, capacity, fractional=False)


# --- laws -------------------------------------------------------------------------------------

AMOUNTS = st.integers(0, 40)
law = settings(max_examples=50)


@law
@given(asked=AMOUNTS, least=AMOUNTS, step=st.integers(1, 12), value=AMOUNTS)
def test_a_step_is_the_smallest_one_that_is_enough(
    asked: int, least: int, step: int, value: int
) -> None:
    enough = (amount for amount in range(least, 100, step) if amount >= asked)
    expected = next(enough)
    rules = policy(least=str(least), step=str(step))
    found = consumed(str(asked), str(value), rules)
    assert found == (str(expected) if expected <= value else "-")
    milli = policy(least=f"{least}m", step=f"{step}m")
    fine = consumed(f"{asked}m", f"{value}m", milli, fractional=True)
    assert fine == (str(Quantity.parse(f"{expected}m")) if expected <= value else "-")


@law
@given(asked=AMOUNTS, values=st.lists(AMOUNTS, min_size=1, unique=True).map(sorted), value=AMOUNTS)
def test_a_valid_value_is_the_smallest_one_that_is_enough(
    asked: int, values: list[int], value: int
) -> None:
    expected = next((amount for amount in values if asked <= amount <= value), None)
    smallest = next((amount for amount in values if asked <= amount), None)
    found = consumed(str(asked), str(value), policy(values=[str(v) for v in values]))
    assert found == ("-" if smallest is None or expected is None else str(smallest))


@law
@given(
    asked=st.one_of(st.none(), st.integers(-(10**22), 10**22)),
    bounds=st.dictionaries(
        st.sampled_from(["least", "most", "step"]),
        st.integers(-(10**20), 10**20).map(str),
        max_size=3,
    ),
    default=st.one_of(st.none(), st.integers(-5, 10**20).map(str)),
    values=st.lists(st.integers(-5, 10**20).map(str), max_size=2),
    scale=st.sampled_from(["", "m", "u", "Gi", "E"]),
    fractional=st.booleans(),
)
def test_whatever_the_amounts_there_is_an_answer_or_a_fault(
    asked: int | None,
    bounds: dict[str, str],
    default: str | None,
    values: list[str],
    scale: str,
    fractional: bool,
) -> None:
    request = None if asked is None else f"{asked}{scale}"
    with suppress(CapacityError):
        consumed(request, "10Ei", policy(default, values, **bounds), fractional=fractional)
