"""Semantic versions as Kubernetes reads them: three readers, one value.

    parse_version       what CEL's `semver(s)` accepts, with its error texts
    parse_normalized    what CEL's `semver(s, true)` accepts: `v1.2`, `01.02.03`
    matches_api_rule    what the API accepts in a version attribute

The API asks for the grammar of semver.org alone, the parsers for numbers below 2^64 as well. So
there are versions that can be stored and not be parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from moorage.api.errors import VersionError
from moorage.kit.go_quote import go_quote

UINT64_MAX: Final = 2**64 - 1

_DIGITS: Final = frozenset("0123456789")
_is_numeric = re.compile(r"[0-9]*+").fullmatch
_is_alphanumeric = re.compile(r"[0-9A-Za-z-]*+").fullmatch

_NUMBER = r"(?:0|[1-9][0-9]*+)"
_PRERELEASE_PART = r"(?:[0-9]*+[A-Za-z-][0-9A-Za-z-]*+|0|[1-9][0-9]*+)"
_BUILD_PART = r"[0-9A-Za-z-]++"
_matches_grammar = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-{_PRERELEASE_PART}(?:\.{_PRERELEASE_PART})*+)?+"
    rf"(?:\+{_BUILD_PART}(?:\.{_BUILD_PART})*+)?+"
).fullmatch

_Precedence = tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A semantic version; build metadata takes no part in equality and order."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.pre:
            text += "-" + ".".join(map(str, self.pre))
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    @property
    def precedence(self) -> _Precedence:
        """The key that versions are ordered by."""
        # A release comes after its prereleases, numbers come before words.
        if not self.pre:  # as most are
            return self.major, self.minor, self.patch, True, ()
        parts = tuple(
            (False, part, "") if isinstance(part, int) else (True, 0, part) for part in self.pre
        )
        return self.major, self.minor, self.patch, False, parts

    def compare(self, other: Version) -> int:
        """Return -1, 0 or 1: before, equal to or after other."""
        mine, theirs = self.precedence, other.precedence
        return (mine > theirs) - (mine < theirs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self.precedence == other.precedence

    def __hash__(self) -> int:
        return hash(self.precedence)

    def __lt__(self, other: Version) -> bool:
        return self.precedence < other.precedence

    def __le__(self, other: Version) -> bool:
        return self.precedence <= other.precedence

    def __gt__(self, other: Version) -> bool:
        return self.precedence > other.precedence

    def __ge__(self, other: Version) -> bool:
        return self.precedence >= other.precedence


def matches_api_rule(text: str) -> bool:
    """Return whether the API accepts the text as a version attribute, its length aside."""
    return _matches_grammar(text) is not None


def parse_version(text: str) -> Version:
    """version = number "." number "." number [ "-" prerelease *("." …) ] [ "+" build *("." …) ]

    Return the version or raise VersionError with the text of Kubernetes' parser.
    """
    if not text:
        raise VersionError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise VersionError("No Major.Minor.Patch elements found")
    major = _parse_number(parts[0], "Major")
    minor = _parse_number(parts[1], "Minor")
    rest, has_build, build = parts[2].partition("+")
    patch, has_prerelease, prerelease = rest.partition("-")
    return Version(
        major,
        minor,
        _parse_number(patch, "Patch"),
        tuple(map(_parse_prerelease, prerelease.split("."))) if has_prerelease else (),
        tuple(map(_parse_build, build.split("."))) if has_build else (),
    )


def parse_normalized(text: str) -> Version:
    """Return the version after dropping a `v` and leading zeros and adding missing numbers."""
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise VersionError("short version cannot contain PreRelease/Build meta data")
    missing = ["0"] * (3 - len(parts))
    return parse_version(".".join(parts + missing))


def _without_leading_zeros(part: str) -> str:
    # Kubernetes leaves parts of one byte alone; only an ASCII character has one byte.
    if len(part) <= 1 and part.isascii():
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else "0" + stripped


def _parse_number(text: str, name: str) -> int:
    if not _is_numeric(text):
        raise VersionError(f"Invalid character(s) found in {name.lower()} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise VersionError(f"{name} number must not contain leading zeroes {go_quote(text)}")
    return _parse_uint64(text)


def _parse_prerelease(text: str) -> int | str:
    if not text:
        raise VersionError("Prerelease is empty")
    if _is_numeric(text):
        if len(text) > 1 and text[0] == "0":
            raise VersionError(
                f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}"
            )
        return _parse_uint64(text)
    if not _is_alphanumeric(text):
        raise VersionError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text


def _parse_build(text: str) -> str:
    if not text:
        raise VersionError("Build meta data is empty")
    if not _is_alphanumeric(text):
        raise VersionError(f"Invalid character(s) found in build meta data {go_quote(text)}")
    return text


def _parse_uint64(digits: str) -> int:
    if not digits:
        raise VersionError('strconv.ParseUint: parsing "": invalid syntax')
    # The length first: turning very long digits into an int is slow, and Python refuses it.
    if len(digits) > 20 or int(digits) > UINT64_MAX:
        raise VersionError(f'strconv.ParseUint: parsing "{digits}": value out of range')
    return int(digits)
