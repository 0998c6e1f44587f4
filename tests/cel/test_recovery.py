"""The errors of texts that are not correct: cel-go's, word for word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.descent_parser import UnexpectedTokenError, parse_tokens
from moorage.cel.lang.errors import CompileError
from moorage.cel.lang.lexer import tokenize
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.parser import Builder
from moorage.cel.lang.recovery import recover
from tests.cel.trees import error, messages, parsed, show, tree

OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT,"
    " STRING, BYTES, IDENTIFIER}"
)

FIELD = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 +", [f"1:4: Syntax error: mismatched input '<EOF>' expecting {OPERAND}"]),
        ("1 2", ["1:3: Syntax error: extraneous input '2' expecting <EOF>"]),
        ("(1", ["1:3: Syntax error: missing ')' at '<EOF>'"]),
        ("a.", ["1:3: Syntax error: no viable alternative at input '.'"]),
        ("a.true", ["1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"]),
        ("[1 2]", ["1:4: Syntax error: extraneous input '2' expecting {']', ','}"]),
        ("a ? b ? c : d : e", ["1:7: Syntax error: mismatched input '?' expecting ':'"]),
        (
            "1 + $ + %",
            [
                "1:5: Syntax error: token recognition error at: '$'",
                f"1:7: Syntax error: mismatched input '+' expecting {OPERAND}",
                f"1:9: Syntax error: mismatched input '%' expecting {OPERAND}",
                f"1:10: Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
            ],
        ),
        (
            "T{1: 2}",
            [f"1:3: Syntax error: mismatched input '1' expecting {FIELD}"],
        ),
        ("T{a b}", ["1:5: Syntax error: missing ':' at 'b'"]),
        ("-1 2", ["1:4: Syntax error: extraneous input '2' expecting <EOF>"]),
        ("x -> x", [f"1:4: Syntax error: extraneous input '>' expecting {OPERAND}"]),
        ("", [f"1:0: Syntax error: mismatched input '<EOF>' expecting {OPERAND}"]),
        (
            "a. #\t.b",
            [
                "1:4: Syntax error: token recognition error at: '#'",
                r"1:6: Syntax error: no viable alternative at input '. \t.'",
            ],
        ),
        (
            "has(a b)",
            [
                "1:5: invalid argument to has() macro",
                "1:7: Syntax error: extraneous input 'b' expecting ')'",
            ],
        ),
        ("a\n.\nb\n c", ["4:2: Syntax error: extraneous input 'c' expecting <EOF>"]),
    ],
)
def test_errors_of_syntax_are_worded_as_in_cel_go(text: str, expected: list[str]) -> None:
    assert messages(text) == expected


def test_what_is_no_token_is_shown_as_it_is() -> None:
    assert error("'a\nb'") == (
        "ERROR: <input>:1:1: Syntax error: token recognition error at: ''a\n'\n | 'a\n | ^\n"
        "ERROR: <input>:2:2: Syntax error: token recognition error at: '''\n | b'\n | .^"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a b) + " * 60, "1:244: Syntax error: error recovery attempt limit exceeded: 30"),
        ("[1 2], " * 60, "-1:0: error recovery token lookahead limit exceeded: 256"),
    ],
)
def test_recovery_is_limited(text: str, message: str) -> None:
    assert message in messages(text)


def test_errors_are_limited() -> None:
    assert error("#" * 500).endswith("\n1 more errors were truncated")


@pytest.mark.parametrize(
    "text",
    [
        "[" + ",".join(["1"] * 5000),
        "-1.f(" * 2000,
        "-1.f(" * 200 + ")" * 199,
        "a" + ".b" * 5000 + "{",
        "a" + ".b" * 5000 + "..",
        "a{" * 5000,
        "{" * 10_000,
        "[?" * 5000,
        "a?" * 5000,
        "#" * 10_000,
        '"\\q' * 3300,
        "a " * 5000,
        " < - ! . ? " * 900,
    ],
    ids=lambda text: text[:12],
)
def test_no_wrong_text_of_10_kb_takes_long(text: str) -> None:
    assert error(text)


# --- laws -----------------------------------------------------------------------------------------

# fmt: off
PIECES = [
    "a", "b", "x", ".", "(", ")", "[", "]", "{", "}", "-", "!", "?", ":", ",", "1", "2.5", "3u",
    "'s'", "b's'", "&&", "||", "+", "*", "==", "<", "in", "true", "null", "`e`", "f(", "has(",
    ".all(x,", "#", '"', "T{", "if", ".?", "[?", "-1",
]
# fmt: on
soup = st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)


@given(st.one_of(st.text(), soup, st.text(alphabet="ab1.()[]{}-!?:,\"'\\&|=< \n\r`")))
def test_any_text_parses_or_is_a_compile_error(text: str) -> None:
    try:
        parsed(text)
        shown = None
    except CompileError as caught:
        shown = str(caught)
    assert shown is None or shown.startswith("ERROR: <input>:")


def _outcome(text: str, *, is_thorough: bool) -> tuple[Any, ...]:
    recovered = recover(text, *tokenize(text), is_thorough=is_thorough)
    builder = Builder(STANDARD_MACROS, recovered.issues)
    expr = None if recovered.is_abandoned else builder.build(recovered.tree)
    return (tuple(recovered.issues), expr and show(expr))


@given(soup)
def test_recovery_finds_errors_in_exactly_the_texts_that_cannot_be_read(text: str) -> None:
    tokens, garbage = tokenize(text)
    recovered = recover(text, tokens, garbage, is_thorough=True)
    try:
        parse_tokens(tokens)
        is_read = not garbage
    except UnexpectedTokenError:
        is_read = False
    assert bool(recovered.issues) == (not is_read)


@given(soup)
def test_recovery_reads_in_large_steps_what_it_reads_in_small_ones(text: str) -> None:
    assert _outcome(text, is_thorough=False) == _outcome(text, is_thorough=True)


def _expressions() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["a", ".b", "1", "-1", "2.5", "3u", "'s'", "b's'", "true", "null"])

    def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        operators = st.sampled_from(["+", "-", "*", "%", "==", "<", "in", "&&", "||"])
        return st.one_of(
            st.tuples(inner, operators, inner).map(" ".join),
            st.tuples(inner, inner, inner).map(lambda three: "{} ? ({}) : {}".format(*three)),
            inner.map("({})".format),
            inner.map("-({})".format),
            inner.map("({}).f".format),
            inner.map("({}).?g".format),
            st.tuples(inner, inner).map(lambda two: "({}).f({})".format(*two)),
            st.tuples(inner, inner).map(lambda two: "({})[{}]".format(*two)),
            st.lists(inner, max_size=3).map(lambda parts: f"f({', '.join(parts)})"),
            st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
            st.tuples(inner, inner).map(lambda two: "{{({}): {}}}".format(*two)),
            inner.map("p.T{{f: {}}}".format),
            inner.map("a.map(x, {})".format),
        )

    return st.recursive(leaves, compound, max_leaves=12)


@given(_expressions())
def test_recovery_of_a_correct_text_reads_it_like_the_reader(text: str) -> None:
    assert _outcome(text, is_thorough=True) == ((), tree(text))
