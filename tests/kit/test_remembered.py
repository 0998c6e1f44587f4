from __future__ import annotations

from moorage.kit.remembered import remembered


def test_short_texts_are_computed_once_and_long_ones_each_time() -> None:
    seen: list[str] = []

    @remembered(2, 3)
    def length(text: str) -> int:
        """Return how long a text is."""
        seen.append(text)
        return len(text)

    assert [length(text) for text in ("abc", "abc", "abcd", "abcd")] == [3, 3, 4, 4]
    assert seen == ["abc", "abcd", "abcd"]
    assert length.__doc__ == "Return how long a text is."


def test_the_number_of_texts_is_bounded() -> None:
    seen: list[bytes] = []

    @remembered(2, 3)
    def same(text: bytes) -> bytes:
        seen.append(text)
        return text

    for text in (b"a", b"b", b"c", b"a"):
        same(text)
    assert seen == [b"a", b"b", b"c", b"a"]
