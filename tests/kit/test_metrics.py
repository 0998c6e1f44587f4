"""Metrics as Prometheus reads them: every digit, every escape."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kit.metrics import (
    Counter,
    Gauge,
    Histogram,
    exponential_buckets,
    exponential_buckets_between,
    exposition,
    number_text,
    openmetrics_exposition,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999_999, "999999"),
        (1_000_000, "1000000"),
        (1_234_567, "1234567"),
        (2**53, "9007199254740992"),
        (1234567.0, "1234567"),
        (-3.0, "-3"),
        # What follows is what Go writes.
        (0.1, "0.1"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (2.2500000000000005e-05, "2.2500000000000005e-05"),
        (123456.789, "123456.789"),
        (1234567.25, "1.23456725e+06"),
        (-1234567.25, "-1.23456725e+06"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_keep_every_digit(value: float, text: str) -> None:
    assert number_text(value) == text


@given(st.floats(allow_nan=False))
def test_a_number_reads_back_as_it_was(value: float) -> None:
    assert float(number_text(value)) == value


@given(st.integers(0, 2**53))
def test_whole_numbers_are_written_in_full(value: int) -> None:
    assert number_text(value) == str(value) == number_text(float(value))


def test_a_counter_beyond_a_million_steps_by_one() -> None:
    counts = Counter("c_total", "Counted.")
    counts.inc(amount=1_234_566)
    counts.inc()
    assert exposition([counts]).endswith("c_total 1234567\n")


def test_labels_and_help_are_escaped() -> None:
    counts = Counter("c_total", 'A "word",\na line and a \\.', ("path",))
    counts.inc('C:\\"x"\n')
    assert exposition([counts]) == (
        '# HELP c_total A "word",\\na line and a \\\\.\n'
        "# TYPE c_total counter\n"
        'c_total{path="C:\\\\\\"x\\"\\n"} 1\n'
    )


def test_a_level_is_read_when_one_looks() -> None:
    values: dict[tuple[str, ...], float] = {("a",): 1.5}
    level = Gauge("l", "Read.", ("name",), lambda: values)
    values["b",] = 2_000_001
    assert exposition([level]).splitlines()[1:] == [
        "# TYPE l gauge",
        'l{name="a"} 1.5',
        'l{name="b"} 2000001',
    ]


def test_what_others_count_is_a_counter() -> None:
    assert "# TYPE l_total counter" in exposition(
        [Gauge("l_total", "Read.", (), lambda: {(): 1}, is_counter=True)]
    )


def test_buckets_count_what_is_at_most_as_large() -> None:
    durations = Histogram("d_seconds", "Took.", (0.1, 0.2), ("kind",))
    for seconds in (0.05, 0.1, 0.15, 9):
        durations.observe(seconds, "x")
    assert exposition([durations]).splitlines()[1:] == [
        "# TYPE d_seconds histogram",
        'd_seconds_bucket{kind="x",le="0.1"} 2',
        'd_seconds_bucket{kind="x",le="0.2"} 3',
        'd_seconds_bucket{kind="x",le="+Inf"} 4',
        'd_seconds_sum{kind="x"} 9.3',
        'd_seconds_count{kind="x"} 4',
    ]
    assert durations.count("x") == 4
    assert durations.count("y") == 0


def test_bounds_of_buckets_are_those_of_kubernetes_to_the_last_digit() -> None:
    # Go multiplies step by step, so that queries by `le` find them.
    assert exponential_buckets(0.00001, 1.5, 4) == (
        1e-05,
        1.5000000000000002e-05,
        2.2500000000000005e-05,
        3.375000000000001e-05,
    )
    assert exponential_buckets_between(0.1, 40, 15)[0] == 0.1
    assert exponential_buckets_between(0.1, 40, 15)[-1] == pytest.approx(40)


def test_a_name_of_old_is_an_alias() -> None:
    counts = Counter("new_total", "Counted.", aliases=("old_total",))
    counts.inc()
    assert "old_total 1\n" in exposition([counts])


def test_a_label_too_few_is_a_fault() -> None:
    counts = Counter("c_total", "Counted.", ("a", "b"))
    counts.inc("x")
    with pytest.raises(ValueError, match="zip"):
        exposition([counts])


def test_openmetrics_names_a_counter_without_its_end_and_says_where_the_text_ends() -> None:
    counts = Counter("c_total", 'All "things".')
    counts.inc(amount=2)
    assert openmetrics_exposition([counts]) == (
        '# HELP c All \\"things\\".\n# TYPE c counter\nc_total 2\n# EOF\n'
    )
