"""Taints and tolerations, of nodes and of devices, and the devices that taint rules select."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from moorage.api.core.placement import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
)
from moorage.api.go_integers import parse_int64
from moorage.api.resource.v1 import Device, DeviceTaint, DeviceTaintRule, DeviceToleration

HARD_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)
NONE = "None"  # an effect of devices only

_is_plain_integer = re.compile("0|-?[1-9][0-9]*").fullmatch


class Tolerations(Struct, frozen=True, gc=False):
    """The tolerations of a pod."""

    listed: tuple[Toleration, ...] = ()
    compares: bool = False  # whether the operators Gt and Lt are known

    def tolerate(self, taint: Taint) -> bool:
        """Return whether some toleration covers the taint."""
        return any(self._covers(toleration, taint) for toleration in self.listed)

    def tolerate_all(self, taints: Iterable[Taint]) -> bool:
        """Return whether every taint is covered."""
        return all(map(self.tolerate, taints))

    def soft(self) -> Tolerations:
        """Return the tolerations that can cover a PreferNoSchedule taint."""
        chosen = tuple(t for t in self.listed if t.effect in ("", PREFER_NO_SCHEDULE))
        return Tolerations(chosen, self.compares)

    def _covers(self, toleration: Toleration, taint: Taint) -> bool:
        if toleration.effect and toleration.effect != taint.effect:
            return False
        if toleration.key and toleration.key != taint.key:
            return False
        match toleration.operator:
            case "" | "Equal":
                return toleration.value == taint.value
            case "Exists":
                return True
            case "Lt" | "Gt":
                return self.compares and _compare(toleration, taint)
        return False


def _compare(toleration: Toleration, taint: Taint) -> bool:
    """Return whether the taint's number lies on the tolerated side; other texts never do."""
    limit, number = _plain_integer(toleration.value), _plain_integer(taint.value)
    if limit is None or number is None:
        return False
    return number < limit if toleration.operator == "Lt" else number > limit


def _plain_integer(text: str) -> int | None:
    return parse_int64(text) if _is_plain_integer(text) else None


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration of a request covers a taint of a device."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
    return False


class DeviceName(NamedTuple):
    """The full name of a device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


def means_by_name(rule: DeviceTaintRule, name: DeviceName, device: Device | None) -> bool:  # noqa: ARG001
    """Return whether a rule selects a device by driver, pool and name, as in Kubernetes."""
    selector = rule.spec.device_selector
    if selector is None or selector.device_class_name is not None or selector.selectors:
        return False
    wanted = (selector.driver, selector.pool, selector.device)
    return all(want in (None, has) for want, has in zip(wanted, name, strict=True))
