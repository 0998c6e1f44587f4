"""Which known name was meant: one measure for attributes, classes, claims, nodes and all others.

Case and separators do not count: product_name is productName. A name that consists of words of
another is like it: nvidia.com is like gpu.nvidia.com. Names with as many dots are compared part by
part: gpu.amd.com is not like gpu.nvidia.com, though most of it is the same. Nor does a prefix or
domain that names share make them alike: example.com/mig is not like example.com/gpu.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Final

LIKENESS_MIN: Final = 0.6
CONTAINED: Final = 0.75  # how alike a name is to one that has all its words
PART_LIKENESS_MIN: Final = 0.4
NAMES_TRIED_MAX: Final = 20_000
COMPARED_MAX: Final = 32
NAME_LENGTH_MAX: Final = 253
_SEPARATORS: Final = re.compile(r"[-_./ :]+")
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_PLAIN_WORDS: Final = frozenset({"com", "io", "dev", "org", "net", "k8s", "x", ""})
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to the given one, if any is; case does not count."""
    return next(iter(similar(name, known)), None)


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are similar to the given one, the most similar first."""
    name = name[:NAME_LENGTH_MAX]
    others = sorted(set(known) - {name})[:NAMES_TRIED_MAX]
    if len(others) > COMPARED_MAX:
        # Most names share few letters with another one; what is left is compared thoroughly.
        pairs = _pairs(name)
        others = nlargest(COMPARED_MAX, others, key=lambda other: len(pairs & _pairs(other)))
    found = [(likeness(name, candidate), candidate) for candidate in others]
    alike = [pair for pair in found if pair[0] > LIKENESS_MIN]
    return [candidate for _, candidate in sorted(alike, key=lambda pair: -pair[0])]


def _pairs(name: str) -> set[str]:
    lower = name[:NAME_LENGTH_MAX].lower()
    return {lower[start : start + 2] for start in range(len(lower) - 1)}


def likeness(name: str, other: str) -> float:
    """Return how alike two names are: 1 for the same name in another spelling, 0 for any others."""
    a, b = name.lower(), other[:NAME_LENGTH_MAX].lower()
    plain_a, plain_b = _SEPARATORS.sub("", a), _SEPARATORS.sub("", b)
    if plain_a == plain_b:
        return 1.0
    if _is_other_domain(a, b):
        return 0.0
    best = max(_ratio(a, b), _ratio(plain_a, plain_b))
    if best < CONTAINED and _is_contained(name, other):
        return CONTAINED
    return best


def _is_other_domain(name: str, other: str) -> bool:
    """Whether a part of a dotted name is unlike that of another; the end may be anything.

    What names have in common before a slash, or from a dot on, makes them no more alike.
    """
    parts, others = name.split("."), other.split(".")
    if len(parts) == len(others):
        pairs = zip(parts[:-1], others[:-1], strict=True)
        if any(_ratio(part, another) < PART_LIKENESS_MIN for part, another in pairs):
            return True
    own, another = _own_parts(name, other)
    return bool(own and another) and _ratio(own, another) < PART_LIKENESS_MIN


def _own_parts(name: str, other: str) -> tuple[str, str]:
    """Return what is left of names without the prefix or the domain that they share."""
    prefix, slash, own = name.rpartition("/")
    other_prefix, _, another = other.rpartition("/")
    if slash or other_prefix:
        return (own, another) if prefix == other_prefix else (name, other)
    parts, others = name.split("."), other.split(".")
    while parts and others and parts[-1] == others[-1]:
        del parts[-1], others[-1]
    return ".".join(parts), ".".join(others)


def _ratio(a: str, b: str) -> float:
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    # The quick estimates are upper bounds that rule out most names.
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < PART_LIKENESS_MIN:
        return 0.0
    return matcher.ratio()


def _is_contained(name: str, other: str) -> bool:
    """Whether one of two names has all words of the other, and no digit alone decides it."""
    words, others = set(_words(name)), set(_words(other))
    fewer = min(words, others, key=len)
    return bool(words <= others or others <= words) and any(len(word) > 2 for word in fewer)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def telling_words(name: str) -> set[str]:
    """Return the words of a name without those that domains have in common."""
    return set(_NO_WORD.split(name.lower())) - _PLAIN_WORDS
