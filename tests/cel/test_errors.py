"""How errors are shown: as cel-go shows them, with the line and a caret."""

from __future__ import annotations

import pickle

import pytest

from moorage.cel.lang.errors import NOWHERE, UNKNOWN, CompileError, Issue, Location, Source


def shown(source: str, *issues: tuple[int, str]) -> str:
    return str(CompileError([Issue(*issue) for issue in issues], source))


def test_an_issue_shows_place_message_line_and_caret() -> None:
    assert shown("a + b", (2, "no")) == "ERROR: <input>:1:3: no\n | a + b\n | ..^"


def test_an_issue_at_the_end_points_behind_the_line() -> None:
    assert shown("a +", (3, "no")) == "ERROR: <input>:1:4: no\n | a +\n | ...^"


def test_only_the_line_of_the_issue_is_shown() -> None:
    text = "a +\n  b +\nc"
    assert shown(text, (6, "no")) == "ERROR: <input>:2:3: no\n |   b +\n | ..^"


def test_a_tab_is_shown_as_one_blank() -> None:
    assert shown("\ta", (1, "no")) == "ERROR: <input>:1:2: no\n |  a\n | .^"


def test_a_carriage_return_stays_in_the_line() -> None:
    assert shown("a\r\nb", (0, "no")) == "ERROR: <input>:1:1: no\n | a\r\n | ^"


def test_wide_characters_get_wide_dots_and_a_wide_caret() -> None:
    assert shown("'é😀' + 世", (7, "no")) == (
        "ERROR: <input>:1:8: no\n | 'é😀' + 世\n | .\uff0e\uff0e....\uff3e"
    )


def test_an_issue_without_a_place_shows_no_line() -> None:
    assert shown("a", (NOWHERE, "too much")) == "ERROR: <input>:-1:0: too much"


def test_an_issue_at_a_node_without_a_place_points_at_the_beginning() -> None:
    assert shown("a b", (UNKNOWN, "no")) == "ERROR: <input>:1:0: no\n | a b\n | ^"


def test_an_empty_text_has_no_line_to_show() -> None:
    assert shown("", (UNKNOWN, "no")) == "ERROR: <input>:1:0: no"


def test_a_line_of_more_than_16384_bytes_is_not_shown() -> None:
    assert "|" in shown("é" * 8192, (0, "no"))
    assert shown("é" * 8193, (0, "no")) == "ERROR: <input>:1:1: no"


def test_issues_are_shown_by_place_and_those_of_one_place_as_found() -> None:
    text = shown("ab\ncd", (4, "fourth"), (1, "second"), (1, "third"), (NOWHERE, "first"))
    messages = [line.rsplit(" ", 1)[1] for line in text.split("\n") if line.startswith("ERROR")]
    assert messages == ["first", "second", "third", "fourth"]


def test_the_first_hundred_issues_found_are_shown() -> None:
    text = shown("x" * 200, *((150 - i, f"issue {i}") for i in range(103)))
    lines = text.split("\n")
    assert lines[-1] == "3 more errors were truncated"
    assert lines[0] == "ERROR: <input>:1:52: issue 99"
    assert len(lines) == 301


def test_the_issues_are_kept_in_the_order_they_were_found() -> None:
    error = CompileError([Issue(2, "b"), Issue(0, "a")], "xyz")
    assert error.issues == (Issue(2, "b"), Issue(0, "a"))
    assert error.source == "xyz"


def test_an_error_can_be_pickled() -> None:
    error = CompileError([Issue(0, "a")], "x")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        ("abc", 0, 1, 0),
        ("abc", 3, 1, 3),
        ("a\nb", 1, 1, 1),
        ("a\nb", 2, 2, 0),
        ("a\n\n", 3, 3, 0),
        ("a\rb", 2, 1, 2),
        ("a", UNKNOWN, 1, -1),
        ("a\nb", NOWHERE, -1, -1),
    ],
)
def test_an_offset_has_a_line_and_a_column(text: str, offset: int, line: int, column: int) -> None:
    assert Source(text).location(offset) == Location(line, column)


def test_there_are_as_many_lines_as_line_feeds_and_one() -> None:
    source = Source("a\n\nb\n")
    assert [source.line(number) for number in range(6)] == [None, "a", "", "b", "", None]
