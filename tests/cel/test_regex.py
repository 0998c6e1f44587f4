from __future__ import annotations

import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.regex import MEMORY_MAX_BYTES, REMEMBERED_MAX, Regex, compile_regex

PIECES = (
    *("a", "b", "A", "1", "-", ".", "^", "$", "*", "+", "?", "{2}", "{1,3}", "{,2}", "(", ")"),
    *("(?:", "|", "[ab]", "[^a]", "[a-c]", "[[:alpha:]]", "[\\d-]", "[]a]", "\\d", "\\W"),
    *("\\b", "\\B", "\\pL", "\\P{Greek}", "\\x41", "\\x{42}", "\\n", "\n", "é", "世"),
    *("(?i)", "(?s)", "(?m)", "(?U)", "(?i:", "(?-i:", "\\Qa.b\\E", "\\.", "\\A", "\\z", "\\101"),
)
TEXTS = ("", "a", "b", "abc", "aab", "ABC", "a\nb", "é世", "a.b", "1-2_x", "aaaabbb", "ſs")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("x*", "aaa", ["", "", "", ""]),
        ("a*", "baac", ["", "aa", ""]),
        ("", "é😀", ["", "", ""]),
        ("^b", "abc", []),
        (r"\bfoo\b", "foo foox foo", ["foo", "foo"]),
        ("a|ab", "ab", ["a"]),
        ("(?i)ſ", "sSſ", ["s", "S", "ſ"]),
        ("(?s).", "\n", ["\n"]),
        ("a$", "a\n", []),
        (r"\pL+", "añ1世界", ["añ", "世界"]),
        (r"\p{greek}", "αa", ["α"]),
        (r"\p{Letter}", "1a", ["a"]),
        (r"[^\P{Lu}]", "aA", ["A"]),
        (r"\Qa.b\E+", "a.bb", ["a.bb"]),
        ("(?P<n>a)(?P<n>b)", "ab", ["ab"]),
        (r"[\x{61}-c]", "d", []),
        (r"\101", "A", ["A"]),
        ("a{,2}", "a{,2}", ["a{,2}"]),
        ("[]a]", "]", ["]"]),
        ("(?U)a+", "aa", ["a", "a"]),
    ],
)
def test_regular_expressions(pattern: str, text: str, found: list[str]) -> None:
    regex = compile_regex(pattern)
    assert regex.find_all(text) == found
    assert regex.find_all(text, limit=1) == found[:1]
    assert regex.find_all(text, limit=0) == []
    assert regex.find(text) == (found[0] if found else None)
    assert regex.search(text) == bool(found)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a**", "invalid nested repetition operator: `**`"),
        ("a+{2}?", "invalid nested repetition operator: `+{2}?`"),
        ("a|*?", "missing argument to repetition operator: `*?`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("((a{10}){10}){11}", "invalid repeat count: `{11}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        (r"\p", r"invalid character class range: `\p`"),
        ("x[a-", "missing closing ]: `[a-`"),
        ("(a", "missing closing ): `(a`"),
        ("a)b", "unexpected ): `a)b`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("x(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?-:a)", "invalid or unsupported Perl syntax: `(?-:`"),
        ("(?P<n-m>a)", "invalid named capture: `(?P<n-m>`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\xZ1", r"invalid escape sequence: `\xZ1`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\x{}", r"invalid escape sequence: `\x{}`"),
        (r"[\b]", r"invalid escape sequence: `\b`"),
        (r"\é", r"invalid escape sequence: `\é`"),
        ("(" * 1000 + ")" * 1000, "expression nests too deeply: `" + "(" * 1000 + ")" * 1000 + "`"),
        (r"\pL{1000}", r"expression too large: `\pL{1000}`"),
    ],
)
def test_expressions_that_go_refuses(pattern: str, message: str) -> None:
    with pytest.raises(EvalError) as refused:
        compile_regex(pattern)
    assert str(refused.value) == f"error parsing regexp: {message}"


def test_hostile_expressions_take_linear_time() -> None:
    assert not compile_regex("(a*)*b").search("a" * 100_000)
    assert compile_regex("(x+x+)+y").search("x" * 10_000) is False


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
def test_what_is_rewritten_means_the_same(pattern: str) -> None:
    options = re2.Options()
    options.log_errors = False
    try:
        original = re2.compile(pattern.encode(), options)
    except re2.error:
        with pytest.raises(EvalError):
            Regex(pattern)
        return
    regex = Regex(pattern)
    for text in TEXTS:
        found = original.search(text.encode())
        assert regex.find(text) == (None if found is None else found.group().decode())


def test_bytes_that_are_no_utf8_stay_what_they_are() -> None:
    text = b"a\xffb".decode("utf-8", "surrogateescape")
    assert compile_regex("b").search(text)
    assert compile_regex("a|b").find_all(text) == ["a", "b"]


def test_expressions_are_remembered_within_bounds() -> None:
    assert compile_regex("remembered") is compile_regex("remembered")
    before = compile_regex("remembered")
    for number in range(REMEMBERED_MAX):
        compile_regex(f"other{number}")
    assert compile_regex("remembered") is not before
    assert MEMORY_MAX_BYTES * REMEMBERED_MAX <= 2**30
