from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.ast import Literal
from moorage.cel.lang.costs import UNBOUNDED, Argument, CallEstimate, Range
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.library.strings import CHARACTERS_MAX, library
from moorage.cel.lang.types import DYN, STRING, list_of
from tests.cel.calls import Caller, size
from tests.cel.calls import argument as make_argument
from tests.cel.extensions import differences, recorded

STRINGS = Caller(library())
texts = st.text("ab,é😀", max_size=8)

RESULTS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("charAt", ("héllo", 1), "é"),
    ("charAt", ("héllo", 5), ""),
    ("charAt", ("😀x", 1), "x"),
    ("indexOf", ("hello", "l"), 2),
    ("indexOf", ("hello", "l", 3), 3),
    ("indexOf", ("hello", "l", 9), -1),
    ("indexOf", ("hello", "", 9), 5),
    ("indexOf", ("hello", "", 2), 2),
    ("indexOf", ("", ""), 0),
    ("lastIndexOf", ("hello", "l"), 3),
    ("lastIndexOf", ("hello", ""), 5),
    ("lastIndexOf", ("hello", "l", 2), 2),
    ("lastIndexOf", ("hello", "l", 3), 3),
    ("lastIndexOf", ("hello", "lo", 4), 3),
    ("lastIndexOf", ("hello", "l", 5), -1),
    ("lastIndexOf", ("hello", "", 9), 5),
    ("lastIndexOf", ("", "a"), -1),
    ("lastIndexOf", ("é", "abc", 0), -1),
    ("lowerAscii", ("HeLLo ÀÉ",), "hello ÀÉ"),
    ("upperAscii", ("HeLLo éà",), "HELLO éà"),
    ("trim", ("\u2003 \t\u00a0x\u200b \x85",), "x\u200b"),
    ("trim", ("\x1cx\x1f",), "\x1cx\x1f"),
    ("replace", ("hello hello", "he", "we"), "wello wello"),
    ("replace", ("hello hello", "he", "we", 1), "wello hello"),
    ("replace", ("hello hello", "he", "we", 0), "hello hello"),
    ("replace", ("hello hello", "he", "we", -1), "wello wello"),
    ("replace", ("abc", "", "_"), "_a_b_c_"),
    ("replace", ("abc", "", "_", 2), "_a_bc"),
    ("replace", ("", "", "x", 1), "x"),
    ("substring", ("héllo", 1), "éllo"),
    ("substring", ("héllo", 5), ""),
    ("substring", ("héllo", 1, 2), "é"),
    ("split", ("a,b,c", ","), ["a", "b", "c"]),
    ("split", ("a,b,c", ",", 2), ["a", "b,c"]),
    ("split", ("a,b,c", ",", 0), []),
    ("split", ("a,b,c", ",", -1), ["a", "b", "c"]),
    ("split", ("", ","), [""]),
    ("split", ("", ""), []),
    ("split", ("é,b", ""), ["é", ",", "b"]),
    ("split", ("abc", "", 2), ["a", "bc"]),
    ("split", ("abc", "", 1), ["abc"]),
    ("join", (["a", "b"],), "ab"),
    ("join", (["a", "b"], "-"), "a-b"),
    ("join", ([], "-"), ""),
    ("strings.quote", ('he said "hi"\n\\',), '"he said \\"hi\\"\\n\\\\"'),
    ("strings.quote", ("\u200b\x01é",), '"\u200b\x01é"'),
]

REFUSALS: list[tuple[str, tuple[Any, ...], str]] = [
    ("charAt", ("abc", -1), "index out of range: -1"),
    ("charAt", ("abc", 4), "index out of range: 4"),
    ("indexOf", ("abc", "a", -1), "index out of range: -1"),
    ("lastIndexOf", ("abc", "a", -2), "index out of range: -2"),
    ("substring", ("abc", -1), "index out of range: -1"),
    ("substring", ("abc", 4), "index out of range: 4"),
    ("substring", ("abc", 0, 4), "index out of range: 4"),
    ("substring", ("abc", -2, -1), "index out of range: -2"),
    ("substring", ("abc", 2, 1), "invalid substring range. start: 2, end: 1"),
    ("join", (["a", 1],), "join: invalid input: 1"),
    ("join", (["a", [1.5, True]],), "join: invalid input: [1.5, true]"),
]

# Costs are rounded up from tenths of characters; searching is by bytes and rounded down.
COSTS: list[tuple[str, tuple[Any, ...], int]] = [
    ("charAt", ("a" * 100, 5), 1),
    ("indexOf", ("a" * 9, "a"), 0),
    ("indexOf", ("é" * 9, "é"), 1),
    ("lowerAscii", ("",), 0),
    ("lowerAscii", ("a" * 11,), 2),
    ("substring", ("hello", 9), 1),
    ("replace", ("hello hello", "he", ""), 3),
    ("split", ("a,b,c", ","), 1),
    ("join", (["abc", "def"], "-"), 2),
    ("join", (["a", 1],), 1),
    ("strings.quote", ("é" * 71,), 8),
]


@pytest.mark.parametrize(("name", "args", "result"), RESULTS)
def test_functions_count_in_code_points(name: str, args: tuple[Any, ...], result: Any) -> None:
    assert STRINGS.call(name, *args) == result


@pytest.mark.parametrize(("name", "args", "message"), REFUSALS)
def test_bad_positions_and_elements_are_errors(
    name: str, args: tuple[Any, ...], message: str
) -> None:
    assert STRINGS.refusal(name, *args) == message


@pytest.mark.parametrize(("name", "args", "cost"), COSTS)
def test_calls_are_charged_by_what_they_look_at(
    name: str, args: tuple[Any, ...], cost: int
) -> None:
    assert STRINGS.cost(name, *args) == cost


def test_quoting_replaces_bytes_that_are_no_text() -> None:
    assert STRINGS.call("strings.quote", "a\udcff") == '"a\ufffd"'


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("replace", ("a" * 5000, "", "b" * 5000)),
        ("join", (["a" * 5000] * 5000,)),
        ("join", ([""] * 5000, "a" * 5000)),
    ],
)
def test_strings_too_long_to_be_made_are_refused(name: str, args: tuple[Any, ...]) -> None:
    expected = f"string would be longer than {CHARACTERS_MAX} characters"
    assert STRINGS.refusal(name, *args) == expected


@given(texts, texts)
def test_joining_what_was_split_gives_the_text_again(text: str, separator: str) -> None:
    parts = STRINGS.call("split", text, separator)
    assert STRINGS.call("join", parts, separator if parts else "") == text


@given(texts, texts, st.integers(0, 9))
def test_last_index_is_found_at_the_offset_or_before(text: str, part: str, start: int) -> None:
    found = STRINGS.call("lastIndexOf", text, part, start)
    expected = [i for i in range(min(start, len(text)) + 1) if text.startswith(part, i)]
    if start >= len(text) and part:
        expected = []
    assert found == max(expected, default=-1)


@given(texts, st.integers(-2, 9), st.integers(-2, 9))
def test_substring_is_the_part_or_an_error(text: str, start: int, end: int) -> None:
    try:
        part = STRINGS.call("substring", text, start, end)
    except EvalError:
        assert not 0 <= start <= end <= len(text)
    else:
        assert text == text[:start] + part + text[end:]


def test_answers_are_those_recorded() -> None:
    tried, different = differences(recorded("strings", "strings-type"))
    assert different == []
    assert tried >= 100


# --- estimates ----------------------------------------------------------------------------


def estimate(name: str, id_: str, target: Argument | None, *args: Argument) -> CallEstimate | None:
    estimator = STRINGS.by_id(name, id_).estimate
    return None if estimator is None else estimator(target, args)


def test_character_at_has_the_default_estimate() -> None:
    assert estimate("charAt", "string_char_at_int", size(0, 63), size(1, 1)) is None


def test_transformations_are_estimated_by_the_target_and_keep_its_size() -> None:
    assert estimate("trim", "string_trim", size(5, 63)) == CallEstimate(Range(1, 7), Range(5, 63))
    assert estimate("indexOf", "string_index_of_string", size(5, 63), size(1, 1)) == CallEstimate(
        Range(1, 7)
    )


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        (size(1, 1), size(3, 3), Range(5, 30)),  # one character becomes three
        (size(3, 3), size(1, 1), Range(2, 10)),  # three become one, or nothing is found
        (size(0, 0), size(2, 2), Range(17, 32)),  # around every character
        (size(0, 2), size(1, 4), Range(3, 54)),
    ],
)
def test_replacing_is_estimated_by_its_longest_and_shortest_result(
    old: Argument, new: Argument, result: Range
) -> None:
    id_ = "string_replace_string_string"
    assert estimate("replace", id_, size(5, 10), old, new) == CallEstimate(Range(1, 2), result)


def test_replacing_in_a_text_of_unknown_size_has_no_bound() -> None:
    id_ = "string_replace_string_string"
    found = estimate("replace", id_, size(0, UNBOUNDED), size(1, 1), size(2, 2))
    assert found == CallEstimate(Range(0, 3689348814741910528), Range(0, UNBOUNDED))


def test_splitting_yields_at_most_as_many_parts_as_are_asked_for() -> None:
    three = make_argument(Range(1, 1), expr=Literal(1, 0, 3))
    minus_one = make_argument(Range(1, 1), expr=Literal(1, 0, -1))
    target, comma = size(5, 10), size(1, 1)
    cost = Range(1, 2)
    id_ = "string_split_string_int"
    assert estimate("split", "string_split_string", target, comma) == CallEstimate(
        cost, Range(0, 10)
    )
    assert estimate("split", id_, target, comma, three) == CallEstimate(cost, Range(0, 3))
    assert estimate("split", id_, target, comma, minus_one) == CallEstimate(
        cost, Range(0, UNBOUNDED)
    )


def test_joining_has_no_bound_unless_the_list_is_empty_or_of_no_known_type() -> None:
    many = make_argument(Range(1, 2), list_of(STRING))
    none = make_argument(Range(0, 0), list_of(DYN))
    untyped = make_argument(Range(0, 64), DYN)
    id_ = "list_join_string"
    assert estimate("join", id_, many, size(1, 1)) == CallEstimate(
        Range(0, 1844674407370955264), Range(0, UNBOUNDED)
    )
    assert estimate("join", id_, none, size(1, 1)) == CallEstimate(Range(0, 0), Range(0, 0))
    assert estimate("join", id_, untyped, size(1, 1)) == CallEstimate(Range(0, 7), Range(0, 63))


def test_the_size_of_a_quoted_text_runs_over() -> None:
    assert estimate("strings.quote", "strings_quote", None, size(5, 10)) == CallEstimate(
        Range(1, 1), Range(7, 22)
    )
    assert estimate("strings.quote", "strings_quote", None, size(0, UNBOUNDED)) == CallEstimate(
        Range(0, 1844674407370955264), Range(2, 0)
    )
