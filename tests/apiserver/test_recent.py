"""What is kept for a while: bounded in number and in bytes, oldest first."""

from __future__ import annotations

from mooring.apiserver.recent import Recent


def test_the_oldest_go_when_there_are_too_many() -> None:
    recent = Recent[str, int](2, 1000)
    for number, key in enumerate("abc"):
        recent.put(key, number, 1)
    assert [recent.get(key) for key in "abc"] == [None, 1, 2]
    assert (len(recent), recent.bytes) == (2, 2)


def test_the_oldest_go_when_they_are_too_large() -> None:
    recent = Recent[str, int](10, 100)
    recent.put("a", 1, 60)
    recent.put("b", 2, 60)
    assert (recent.get("a"), recent.get("b"), recent.bytes) == (None, 2, 60)
    recent.put("huge", 3, 101)
    assert (len(recent), recent.bytes) == (0, 0)


def test_what_is_there_stays_as_it_is() -> None:
    recent = Recent[str, int](10, 100)
    recent.put("a", 1, 10)
    recent.put("a", 2, 10)
    assert (recent.get("a"), recent.bytes) == (1, 10)
