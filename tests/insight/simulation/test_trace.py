"""Traces: CSV, JSON and random arrivals."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.insight.errors import TraceError
from moorage.insight.simulation import Arrival, draw_arrivals, read_rows, read_trace, seconds_of

CSV = b"""\
arrival,workload,duration,count
0,deployment/train,1h30m,2

10m, pod/a ,,
"""


def test_a_csv_file_has_a_row_for_each_arrival() -> None:
    assert read_trace(CSV, "trace.csv") == [
        Arrival(at_s=0, workload="deployment/train", duration_s=5400, count=2),
        Arrival(at_s=600, workload="pod/a"),
    ]


def test_a_json_file_says_the_same() -> None:
    text = """[{"arrival": 0, "workload": "deployment/train", "duration": "1h30m", "count": 2},
               {"workload": "pod/a", "arrival": "10m"}]"""
    assert read_trace(text.encode(), "trace.json") == read_trace(CSV, "trace.csv")


def test_rows_of_python_say_the_same() -> None:
    rows = [{"arrival": 5.5, "workload": "pod/a", "duration": None}]
    assert read_rows(rows, "trace") == [Arrival(at_s=5.5, workload="pod/a")]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "t: a trace without arrivals"),
        (b"[]", "t: a trace without arrivals"),
        (b"\xff", "t: not UTF-8: byte 0"),
        (b"[1]", "t: [0]: expected an object with arrival, workload, duration, count"),
        (b"{}", "t: expected an array of arrivals"),
        (b"[{]", "t: not JSON: "),
        (b"arival,workload\n", 't:1: unknown column "arival"; did you mean arrival?'),
        (b"arrival,workload,arrival\n", "t:1: a column is there twice"),
        (b"arrival\n1\n", "t:1: no workload"),
        (b"arrival,workload\n1\n", "t:2: 1 cells, but the header has 2"),
        (b"arrival,workload\nsoon,pod/a\n", 't:2: arrival: "soon": expected seconds or a duration'),
        (b"arrival,workload\n-1,pod/a\n", 't:2: arrival: "-1": must be between 0 and 100 years'),
        (b"arrival,workload\nnan,pod/a\n", 't:2: arrival: "nan": must be between'),
        (b"arrival,workload\n1e300,pod/a\n", 't:2: arrival: "1e300": must be between'),
        (b"arrival,workload\n1, \n", "t:2: workload: expected KIND/NAME"),
        (b"arrival,workload,count\n1,pod/a,2.5\n", "t:2: count: expected a whole number"),
        (b"arrival,workload,count\n1,pod/a,0\n", "t:2: count: 0: must be between 1 and 100,000"),
        (b'[{"arrival": true, "workload": "pod/a"}]', "t: [0]: arrival: expected seconds"),
        (b'[{"arrival": 1e999, "workload": "pod/a"}]', "t: "),
        (b'arrival,workload\n"1,pod/a\n', "t:"),
    ],
)
def test_a_wrong_trace_is_an_error_with_its_place(content: bytes, error: str) -> None:
    with pytest.raises(TraceError) as found:
        read_trace(content, "t")
    assert str(found.value).startswith(error)


@given(st.binary(max_size=200) | st.text("arivlwokduntc,/\n0159hms[]{}:\"'", max_size=200))
def test_whatever_the_bytes_are_they_are_a_trace_or_an_error(content: bytes | str) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    with suppress(TraceError):
        assert read_trace(data, "t")


def test_a_trace_is_bounded() -> None:
    content = b"arrival,workload\n" + b"0,pod/a\n" * 100_001
    with pytest.raises(TraceError, match="t:100002: more than 100,000 rows"):
        read_trace(content, "t")


def test_times_are_seconds_or_durations() -> None:
    assert [seconds_of(each) for each in (90, "90", "1m30s", "1.5m")] == [90, 90, 90, 90]


def test_random_arrivals_come_at_the_rate_and_not_after_the_end() -> None:
    numbers = iter([0.5] * 1000)
    found = draw_arrivals(
        "pod/a", per_hour=60, duration_s=100, until_s=3600, draw=lambda: next(numbers)
    )
    assert len(found) == 86  # every 60 * ln 2 seconds
    assert {round(each.duration_s or 0, 1) for each in found} == {69.3}
    assert found[-1].at_s < 3600


def test_a_rate_that_is_too_high_is_an_error() -> None:
    with pytest.raises(TraceError, match="lower the rate or the time"):
        draw_arrivals("pod/a", per_hour=1e9, duration_s=1, until_s=3600, draw=lambda: 0.5)
    with pytest.raises(TraceError, match="must be more than 0"):
        draw_arrivals("pod/a", per_hour=0, duration_s=1, until_s=3600, draw=lambda: 0.5)
