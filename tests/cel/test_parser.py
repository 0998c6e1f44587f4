"""Text to syntax tree: the trees of cel-go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.cel.lang import ast
from moorage.cel.lang.errors import CompileError
from moorage.cel.lang.library.lists import library as lists
from moorage.cel.lang.library.optionals import library as optionals
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.macros import bindings_library as bindings
from moorage.cel.lang.macros import two_variable_library as comprehensions
from moorage.cel.lang.parser import SIZE_MAX, parse
from moorage.cel.lang.values import UInt
from tests.cel.trees import messages, nodes, parsed, show, tree
from tests.corpus import corpus

# --- trees ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "_+_(1, _*_(2, 3))"),
        ("1 * 2 + 3", "_+_(_*_(1, 2), 3)"),
        ("1 - 2 - 3", "_-_(_-_(1, 2), 3)"),
        ("1 - (2 - 3)", "_-_(1, _-_(2, 3))"),
        ("8 / 4 % 3 * 2", "_*_(_%_(_/_(8, 4), 3), 2)"),
        ("1 + 2 == 3 - 4", "_==_(_+_(1, 2), _-_(3, 4))"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("a in b in c", "@in(@in(a, b), c)"),
        ("a != b", "_!=_(a, b)"),
        ("a <= b", "_<=_(a, b)"),
        ("a >= b", "_>=_(a, b)"),
        ("a > b", "_>_(a, b)"),
        ("a || b && c", "_||_(a, _&&_(b, c))"),
        ("a && b || c && d", "_||_(_&&_(a, b), _&&_(c, d))"),
        ("a == b && c", "_&&_(_==_(a, b), c)"),
        ("a ? b : c", "_?_:_(a, b, c)"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("a || b ? c || d : e || f", "_?_:_(_||_(a, b), _||_(c, d), _||_(e, f))"),
        ("a ? (b ? c : d) : e", "_?_:_(a, _?_:_(b, c, d), e)"),
        ("!a.b", "!_(a.b)"),
        ("-a.b[c]", "-_(_[_](a.b, c))"),
        ("!a == b", "_==_(!_(a), b)"),
        ("-a * -b", "_*_(-_(a), -_(b))"),
    ],
)
def test_operators_bind_by_precedence_and_to_the_left(text: str, expected: str) -> None:
    assert tree(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!!a", "a"),
        ("!!!a", "!_(a)"),
        ("--a", "a"),
        ("---a", "-_(a)"),
        ("-1", "-1"),
        ("- 1", "-1"),
        ("--1", "1"),
        ("---1", "-_(1)"),
        ("-(1)", "-_(1)"),
        ("-1.5", "-1.5"),
        ("-1u", "-_(1u)"),
        ("!-1", "!_(-1)"),
        ("-1.f()", "-1.f()"),
        ("1 -1", "_-_(1, 1)"),
        ("1 - -1", "_-_(1, -1)"),
        ("1--1", "_-_(1, -1)"),
        ("-9223372036854775808", "-9223372036854775808"),
    ],
)
def test_pairs_of_signs_vanish_and_a_number_takes_one_minus(text: str, expected: str) -> None:
    assert tree(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a && b && c", "_&&_(_&&_(a, b), c)"),
        ("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
        ("a || b || c || d || e", "_||_(_||_(_||_(a, b), c), _||_(d, e))"),
        ("(a && b) && (c && d && e)", "_&&_(_&&_(a, b), _&&_(_&&_(c, d), e))"),
        (
            "a && b && c && d && e && f",
            "_&&_(_&&_(_&&_(a, b), c), _&&_(_&&_(d, e), f))",
        ),
    ],
)
def test_chains_of_and_or_become_balanced_trees(text: str, expected: str) -> None:
    assert tree(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "a"),
        (".a", ".a"),
        ("a.b.c", "a.b.c"),
        (".a.b", ".a.b"),
        ("a.b(c).d", "a.b(c).d"),
        ("f()", "f()"),
        (".f(a)", ".f(a)"),
        ("f(a, b + c)", "f(a, _+_(b, c))"),
        ("a[b]", "_[_](a, b)"),
        ("a[b][c].d", "_[_](_[_](a, b), c).d"),
        ("a.?b", "_?._(a, 'b')"),
        ("a.?b.c", "_?._(a, 'b').c"),
        ("a[?b]", "_[?_](a, b)"),
        ("a[?b].?c", "_?._(_[?_](a, b), 'c')"),
        ("(a).b", "a.b"),
        ("((a))", "a"),
        ("a.if", "a.if"),
        ("a.`b-c/d e`", "a.b-c/d e"),
        ("a.?`b.c`", "_?._(a, 'b.c')"),
        ("[]", "[]"),
        ("[,]", "[]"),
        ("[1, 2]", "[1, 2]"),
        ("[1, 2,]", "[1, 2]"),
        ("[?a, b, ?c]", "[?a, b, ?c]"),
        ("{}", "{}"),
        ("{,}", "{}"),
        ("{'a': 1, 'b': 2}", "{'a': 1, 'b': 2}"),
        ("{?'a': b, c ? d : e: f,}", "{?'a': b, _?_:_(c, d, e): f}"),
        ("T{}", "T{}"),
        ("T{,}", "T{}"),
        (".a.b.T{f: 1, ?g: h,}", ".a.b.T{f: 1, ?g: h}"),
        ("T{`f-g`: 1}.h", "T{f-g: 1}.h"),
        ("a.b{}.c", "a.b{}.c"),
        ("a // a comment\n + b", "_+_(a, b)"),
        ("a\t\r\n\f+b", "_+_(a, b)"),
    ],
)
def test_operands(text: str, expected: str) -> None:
    assert tree(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("007", 7),
        ("0xFf", 255),
        ("-0x10", -16),
        ("9223372036854775807", 2**63 - 1),
        ("0x7fffffffffffffff", 2**63 - 1),
        ("0" * 5000 + "1", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        (".5e+1", 5.0),
        ("1e-999", 0.0),
        ("-.5", -0.5),
        ("true", True),
        ("false", False),
        ("null", None),
        ("'a'", "a"),
        ('"a\'b"', "a'b"),
        ("''", ""),
        ("'''a'b'''", "a'b"),
        ('"""a"b"""', 'a"b'),
        ('""""""', ""),
        ("'''a\nb'''", "a\nb"),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
        (r"r'a\n'", r"a\n"),
        (r'R"a\"', "a\\"),
        ("r'''a\\\n'''", "a\\\n"),
        (r"'\a\b\f\n\r\t\v\\\'\"\`\?'", "\a\b\f\n\r\t\v\\'\"`?"),
        (r"'\x41\X41\u00e9\U0001F600\101'", "AAé😀A"),
        (r"'\377\xff'", "ÿÿ"),
        ("'é😀'", "é😀"),
        ("b'a'", b"a"),
        ("B'é'", "é".encode()),
        (r"b'\xff\377\x00\n'", b"\xff\xff\x00\n"),
        (r"br'\n'", rb"\n"),
        ("b'''a'b'''", b"a'b"),
    ],
)
def test_literals(text: str, value: Any) -> None:
    literal = parsed(text).expr
    assert isinstance(literal, ast.Literal)
    assert literal.value == value
    assert type(literal.value) is type(value)


@pytest.mark.parametrize(
    ("text", "value"), [("0u", 0), ("0xFFU", 255), (f"{2**64 - 1}u", 2**64 - 1)]
)
def test_unsigned_literals(text: str, value: int) -> None:
    literal = parsed(text).expr
    assert isinstance(literal, ast.Literal)
    assert type(literal.value) is UInt
    assert literal.value == value


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("aa + b", 3),
        ("aa ? b : c", 3),
        ("aa && b", 3),
        ("a && b && cc", 7),
        ("  !a", 2),
        ("-  -  -a", 0),
        ("aa.b", 2),
        ("aa . ? b", 3),
        ("aa.bb (c)", 6),
        ("ff (c)", 3),
        ("aa[b]", 2),
        ("(aa)", 1),
        (".aa", 1),
        (" - 1", 1),
        (" [1]", 1),
        (" {1: 2}", 1),
        ("aa.T{}", 4),
        ("[1].all(x, y)", 7),
        ("has(a.b)", 3),
    ],
)
def test_a_node_stands_where_errors_about_it_point(text: str, offset: int) -> None:
    assert parsed(text).expr.offset == offset


def test_an_entry_stands_at_its_colon() -> None:
    mapping, message = parsed("{a :b}").expr, parsed("T{a :b}").expr
    assert isinstance(mapping, ast.CreateMap)
    assert isinstance(message, ast.CreateStruct)
    assert mapping.entries[0].offset == 3
    assert message.fields[0].offset == 4


def test_the_name_of_an_optional_field_stands_at_the_name() -> None:
    call = parsed("a.? b").expr
    assert isinstance(call, ast.Call)
    assert call.args[1].offset == 4


def test_all_nodes_have_numbers_of_their_own() -> None:
    text = "[1, 2].map(x, x > 1, {x: [x].exists(y, has(y.z) && y == x)}).size() + T{a: -1}.b[?c]"
    ids = [node.id for node in nodes(parsed(text).expr)]
    assert len(set(ids)) == len(ids)


# --- macros ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("has(a.b.c)", "a.b.c?"),
        ("has(has(a.b))", "a.b?"),
        (
            "a.all(x, p)",
            "loop(x, @result; a; True; @not_strictly_false(@result); _&&_(@result, p); @result)",
        ),
        (
            "a.exists(x, p)",
            (
                "loop(x, @result; a; False; @not_strictly_false(!_(@result));"
                " _||_(@result, p); @result)"
            ),
        ),
        (
            "a.exists_one(x, p)",
            "loop(x, @result; a; 0; True; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))",
        ),
        (
            "a.map(x, t)",
            "loop(x, @result; a; []; True; _+_(@result, [t]); @result)",
        ),
        (
            "a.map(x, p, t)",
            "loop(x, @result; a; []; True; _?_:_(p, _+_(@result, [t]), @result); @result)",
        ),
        (
            "a.filter(x, p)",
            "loop(x, @result; a; []; True; _?_:_(p, _+_(@result, [x]), @result); @result)",
        ),
        ("a.has(b.c)", "a.has(b.c)"),
        (".has(b.c)", ".has(b.c)"),
        ("has(a.b, c.d)", "has(a.b, c.d)"),
        ("all(x, p)", "all(x, p)"),
        ("a.all(x)", "a.all(x)"),
        ("a.existsOne(x, p)", "a.existsOne(x, p)"),
    ],
)
def test_macros_are_expanded_by_name_arity_and_style(text: str, expected: str) -> None:
    assert tree(text) == expected


def test_the_call_that_a_macro_replaced_is_kept_by_the_number_of_the_expansion() -> None:
    result = parsed("a.all(x, has(x.b))")
    assert result.source == "a.all(x, has(x.b))"
    calls = {show(call) for call in result.macro_calls.values()}
    assert calls == {"has(x.b)", "a.all(x, x.b?)"}
    assert show(result.macro_calls[result.expr.id]) == "a.all(x, x.b?)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("has(a)", ["1:5: invalid argument to has() macro"]),
        ("has(a['b'])", ["1:6: invalid argument to has() macro"]),
        ("has(a.?b)", ["1:6: invalid argument to has() macro"]),
        ("[1].all(1, true)", ["1:9: argument must be a simple name"]),
        ("[1].exists(a.b, true)", ["1:13: argument must be a simple name"]),
        ("[1].map(1, 2)", ["1:9: argument is not an identifier"]),
        ("[1].filter(f(), 2)", ["1:13: argument is not an identifier"]),
        (
            "[1].all(__result__, true)",
            ["1:9: iteration variable overwrites accumulator variable"],
        ),
        (
            "[1].map(__result__, true)",
            ["1:9: iteration variable overwrites accumulator variable"],
        ),
        (
            "has(a) || has(b)",
            ["1:5: invalid argument to has() macro", "1:15: invalid argument to has() macro"],
        ),
    ],
)
def test_macros_refuse_arguments_that_do_not_fit(text: str, expected: list[str]) -> None:
    assert messages(text) == expected


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9223372036854775808", ["1:1: invalid int literal"]),
        ("-9223372036854775809", ["1:1: invalid int literal"]),
        ("--9223372036854775808", ["1:3: invalid int literal"]),
        ("0x10000000000000000", ["1:1: invalid int literal"]),
        ("9" * 9000, ["1:1: invalid int literal"]),
        ("18446744073709551616u", ["1:1: invalid uint literal"]),
        ("1e309", ["1:1: invalid double literal"]),
        ("a + -1e999999999", ["1:5: invalid double literal"]),
        (r"'\ud800'", ["1:1: invalid unicode code point"]),
        (r"'\U00110000'", ["1:1: invalid unicode code point"]),
        (r"'\UFFFFFFFF'", ["1:1: invalid unicode code point"]),
        (r"b'\u0041'", ["1:1: unable to unescape string"]),
        ("while + .for(1)", ["1:1: reserved identifier: while", "1:9: reserved identifier: for"]),
        (
            "[9223372036854775808, if]",
            ["1:2: invalid int literal", "1:23: reserved identifier: if"],
        ),
    ],
)
def test_what_is_written_correctly_may_still_mean_nothing(text: str, expected: list[str]) -> None:
    assert messages(text) == expected


# --- limits ---------------------------------------------------------------------------------------

TOO_NESTED = ["-1:0: expression recursion limit exceeded: 250"]
TOO_DEEP = ["-1:0: max recursion depth exceeded"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(" * 249 + "a" + ")" * 249, []),
        ("(" * 250 + "a" + ")" * 250, TOO_NESTED),
        ("(" * 10_000, TOO_NESTED),
        ("[" * 249 + "]" * 249, []),
        ("[" * 251 + "]" * 251, TOO_NESTED),
        ("f(" * 250 + "a" + ")" * 250, TOO_NESTED),
        ("a ? b : " * 249 + "c", []),
        ("a ? b : " * 250 + "c", TOO_NESTED),
        ("1 + (" * 124 + "a" + ")" * 124, []),
        ("1 + (" * 125 + "a" + ")" * 125, TOO_NESTED),
        ("1 == (" * 125 + "a" + ")" * 125, TOO_NESTED),
        ("1 + 2 * (" * 84 + "a" + ")" * 84, TOO_NESTED),
        ("a" + ".b" * 250, []),
        ("a" + ".b" * 251, TOO_DEEP),
        ("a" + "[0]" * 251, TOO_DEEP),
        (" + ".join(["1"] * 251), []),
        (" + ".join(["1"] * 252), TOO_DEEP),
        (" + ".join(["1"] * 301), TOO_DEEP),
        (" && ".join(["a"] * 3000), []),
        (" && ".join(["a" + ".b" * 200] * 20), []),
        ("!" * 9_999 + "a", []),
        ("-" * 9_999 + "a", []),
        ("[" + ", ".join(["1"] * 3000) + "]", []),
    ],
)
def test_nesting_is_limited_and_length_is_not(text: str, expected: list[str]) -> None:
    if expected:
        assert messages(text) == expected
    else:
        parsed(text)


def test_a_text_has_at_most_100_000_characters() -> None:
    parsed("'" + "é" * (SIZE_MAX - 2) + "'")
    assert messages("'" + "é" * (SIZE_MAX - 1) + "'") == [
        "-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    ]


# --- recorded answers -----------------------------------------------------------------------------


def _recorded() -> Iterator[tuple[str, str, str | None]]:
    """Yield expressions with the class and the text of the error of Kubernetes."""
    with corpus("cel", "public.jsonl").open() as lines:
        for line in lines:
            case = json.loads(line)
            expect = case["expect"]
            yield case["expression"], expect["error_class"], expect["compile_error"]


def test_kubernetes_and_we_parse_the_same_texts_and_word_errors_the_same() -> None:
    macros = [
        *STANDARD_MACROS,
        *(macro for lib in (optionals, bindings, comprehensions, lists) for macro in lib().macros),
    ]
    classes = {"parse", "parse-reserved", "parse-literal", "macro"}
    differing = []
    for text, error_class, wanted in _recorded():
        try:
            parse(text, macros)
            got = None
        except CompileError as caught:
            got = f"compilation failed: {caught}"
        if got != (wanted if error_class in classes or got else None):
            differing.append(text)
    assert not differing
