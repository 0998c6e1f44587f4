from __future__ import annotations

import pytest

from moorage.api.quantity import Quantity
from moorage.cel.lang import macros
from moorage.cel.lang.library import optionals
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.parser import parse
from moorage.cel.lang.values import NONE, Optional, UInt
from moorage.insight.expressions.syntax import shown, write
from moorage.insight.messages import counted

MACROS = (*STANDARD_MACROS, *optionals.library().macros, *macros.bindings_library().macros)


def rewritten(text: str) -> str:
    parsed = parse(text, MACROS)
    return write(parsed.expr, parsed.macro_calls)


@pytest.mark.parametrize(
    "text",
    [
        'device.attributes["gpu.example.com"].model == "H200"',
        "a && b && c || d && !e",
        "(a || b) && c",
        "a && (b || c)",
        "!(a && b)",
        "a - (b - c)",
        "a - b - c",
        "a * (b + c) / d % 2",
        "-a + -1 - -2.5",
        "(-1).f()",
        "a ? b : c ? d : e",
        "(a ? b : c) ? d : e",
        "(a ? b : c) && d",
        "x in [1, 2u, 3.5, null, true]",
        '{"a": 1, "b": [?x, y]}',
        'has(device.attributes["d"].model)',
        'device.attributes["d"].?model.orValue("none")',
        'device.attributes[?"d"]["list-of-string"]',
        "list.exists(x, x > 1 && x.all(y, y == x))",
        'list.map(x, x != "a", x + "b").filter(y, has(y.z))',
        'cel.bind(d, device.attributes["d"], d.model == d.name)',
        "a.optMap(v, v + 1)",
        'size("tab\\tquote\\"") == 1',
        'b"a\\x00\\xff" == b',
        "google.Type{field: 1}",
    ],
)
def test_a_tree_is_written_as_it_was_read(text: str) -> None:
    assert rewritten(text) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a  ==\n  1", "a == 1"),
        ("((a)) && (b == c)", "a && b == c"),
        ("'single'", '"single"'),
        ("(a + b) + c", "a + b + c"),
        ("0x1F", "31"),
    ],
)
def test_spaces_and_needless_parentheses_are_left_out(text: str, written: str) -> None:
    assert rewritten(text) == written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (UInt(1), "1u"),
        (1.5, "1.5"),
        ('a"b', '"a\\"b"'),
        (b"\x00a", 'b"\\x00a"'),
        (["a", 1], '["a", 1]'),
        ({"a": (1, 2)}, '{"a": [1, 2]}'),
        (Quantity.parse("80Gi"), "80Gi"),
        (NONE, "absent"),
        (Optional("a"), '"a"'),
        (list(range(10)), "[0, 1, 2, 3, 4, 5, 6, 7, … 2 more]"),
        ("x" * 200, '"' + "x" * 98 + "…"),
    ],
)
def test_values_are_shown_as_cel_writes_them(value: object, text: str) -> None:
    assert shown(value) == text


def test_numbers_come_with_their_noun() -> None:
    assert [counted(n, "device") for n in (0, 1, 2000)] == [
        "0 devices",
        "1 device",
        "2,000 devices",
    ]
