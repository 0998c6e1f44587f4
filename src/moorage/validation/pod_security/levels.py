"""Levels and versions, and the policy that the labels of a namespace ask for.

    pod-security.kubernetes.io/enforce: baseline            level of a mode: enforce, audit, warn
    pod-security.kubernetes.io/enforce-version: v1.36       version of its checks; latest

A label that cannot be read is an error and still gives a policy: `restricted` for enforce, so that
nothing slips through, and `privileged` for audit and warn, which refuse nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from moorage.api.field_path import root
from moorage.validation.errors import ErrorList, invalid

LABEL_PREFIX: Final = "pod-security.kubernetes.io/"
ENFORCE, AUDIT, WARN = "enforce", "audit", "warn"
VERSION_SUFFIX: Final = "-version"

BAD_VERSION: Final = 'must be "latest" or "v1.x"'
MINOR_MAX: Final = 2**63 - 1

_LABELS = root("metadata.labels")
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)


class Level(StrEnum):
    """How much a policy forbids; each level forbids what the one before it does, and more."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"

    @property
    def strictness(self) -> int:
        """The rank of the level: a stricter one is higher."""
        return _STRICTNESS[self]


_STRICTNESS = {level: rank for rank, level in enumerate(Level)}
BAD_LEVEL: Final = f"must be one of {', '.join(Level)}"


class PolicyVersion(NamedTuple):
    """The Kubernetes version 1.<minor> whose checks apply; None: the latest."""

    minor: int | None = None

    def __str__(self) -> str:
        return "latest" if self.minor is None else f"v1.{self.minor}"


LATEST: Final = PolicyVersion()


class LevelVersion(NamedTuple):
    """A level as of a version."""

    level: Level = Level.PRIVILEGED
    version: PolicyVersion = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def is_equivalent(self, other: LevelVersion) -> bool:
        """Return whether both forbid the same; what is privileged has no version."""
        return self == other or self.level is other.level is Level.PRIVILEGED


class PodSecurityPolicy(NamedTuple):
    """What each mode of a namespace asks of its pods."""

    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def is_privileged(self) -> bool:
        """Whether no mode forbids anything."""
        return all(mode.level is Level.PRIVILEGED for mode in self)

    def is_equivalent(self, other: PodSecurityPolicy) -> bool:
        """Return whether both policies forbid the same in every mode."""
        return all(mine.is_equivalent(its) for mine, its in zip(self, other, strict=True))


PRIVILEGED_POLICY: Final = PodSecurityPolicy()


def parse_level(text: str) -> Level | None:
    """Return a level by its name, if there is one."""
    return next((level for level in Level if level == text), None)


def parse_version(text: str) -> PolicyVersion | None:
    """Return the version that a text names: `latest` or `v1.<minor>`."""
    if text == str(LATEST):
        return LATEST
    found = _VERSION.fullmatch(text)
    # No more digits than the largest number has: Python refuses to read very long ones.
    if found is None or len(found[1]) > 19 or int(found[1]) > MINOR_MAX:
        return None
    return PolicyVersion(int(found[1]))


def policy_of(
    labels: Mapping[str, str], defaults: PodSecurityPolicy
) -> tuple[PodSecurityPolicy, ErrorList]:
    """Return the policy of a namespace by its labels, and errors of labels that cannot be read."""
    errors: ErrorList = []
    enforce = _mode(labels, ENFORCE, defaults.enforce, Level.RESTRICTED, errors)
    audit = _mode(labels, AUDIT, defaults.audit, Level.PRIVILEGED, errors)
    warn = _mode(labels, WARN, defaults.warn, Level.PRIVILEGED, errors)
    is_enforced = parse_level(labels.get(LABEL_PREFIX + ENFORCE, "")) is not None
    # Whoever enforces a level and says nothing of warnings wants to hear of workloads whose pods
    # will be refused.
    if (
        is_enforced
        and LABEL_PREFIX + WARN not in labels
        and enforce.level.strictness > warn.level.strictness
    ):
        has_version = LABEL_PREFIX + WARN + VERSION_SUFFIX in labels
        warn = LevelVersion(enforce.level, warn.version if has_version else enforce.version)
    return PodSecurityPolicy(enforce, audit, warn), errors


def _mode(
    labels: Mapping[str, str],
    mode: str,
    default: LevelVersion,
    unreadable: Level,
    errors: ErrorList,
) -> LevelVersion:
    """Return what the labels of a mode ask for; `unreadable` is the level of a bad label."""
    level, version = default
    label = LABEL_PREFIX + mode
    if (text := labels.get(label)) is not None:
        parsed = parse_level(text)
        if parsed is None:
            errors.append(invalid(_LABELS.key(label), text, BAD_LEVEL))
        level = parsed or unreadable
    label += VERSION_SUFFIX
    if (text := labels.get(label)) is not None:
        parsed_version = parse_version(text)
        if parsed_version is None:
            errors.append(invalid(_LABELS.key(label), text, BAD_VERSION))
        version = parsed_version or LATEST
    return LevelVersion(level, version)
