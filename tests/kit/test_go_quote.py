from __future__ import annotations

import pytest

from moorage.kit.go_quote import go_quote, go_quote_list


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("gpu", '"gpu"'),
        ('a"b\\', r'"a\"b\\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\0\x1f\x7f", r'"\x00\x1f\x7f"'),
        ("é", '"é"'),
        ("\u00a0\u200b", r'"\u00a0\u200b"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("\udc80", r'"\x80"'),  # a byte that is not UTF-8
    ],
)
def test_texts_are_quoted_as_go_does(text: str, quoted: str) -> None:
    assert go_quote(text) == quoted


def test_lists_are_quoted_one_by_one() -> None:
    assert go_quote_list(["a", "b c"]) == '["a" "b c"]'
