"""Rules for how old pods are replaced by new ones.

# amount: a number of pods, or a share of them: 1, "25%"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mooring.api.apps import UpdateStrategy
from mooring.api.fieldpath import Path
from mooring.validation.checks import not_negative
from mooring.validation.errors import (
    Errors,
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
)

_PERCENT = "[0-9]+%"
_is_percent = re.compile(_PERCENT).fullmatch
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    f"(e.g. '1%',  or '93%', regex used for validation is '{_PERCENT}')"
)
_NO_AMOUNT = "must be an integer or percentage (e.g '5%%')"

ROLLING = "RollingUpdate"
RECREATE = "Recreate"
ON_DELETE = "OnDelete"

Limits = dict[str, Any]


def check_deployment_strategy(strategy: UpdateStrategy, path: Path) -> Errors:
    """Check how a deployment replaces its pods."""
    match strategy.type:
        case "Recreate":
            if strategy.rolling_update is None:
                return []
            detail = f"may not be specified when strategy `type` is '{RECREATE}'"
            return [forbidden(path.child("rollingUpdate"), detail)]
        case "RollingUpdate":
            return _check_limits(strategy, _check_deployment_limits, path)
        case _:
            return [_unknown_strategy(strategy, (RECREATE, ROLLING), path)]


def check_daemon_strategy(strategy: UpdateStrategy, path: Path) -> Errors:
    """Check how a daemon set replaces its pods."""
    match strategy.type:
        case "OnDelete":
            return []
        case "RollingUpdate":
            return _check_limits(strategy, _check_daemon_limits, path)
        case _:
            return [_unknown_strategy(strategy, (ROLLING, ON_DELETE), path)]


def check_stateful_strategy(strategy: UpdateStrategy, path: Path) -> Errors:
    """Check how a stateful set replaces its pods."""
    match strategy.type:
        case "":
            return [required(path)]
        case "RollingUpdate":
            if strategy.rolling_update is None:
                return []
            return _check_limits(strategy, _check_stateful_limits, path)
        case "OnDelete" | "Recreate":
            if strategy.rolling_update is None:
                return []
            detail = f"only allowed for updateStrategy '{ROLLING}'"
            shown = _internal_limits(strategy.rolling_update)
            return [invalid(path.child("rollingUpdate"), shown, detail)]
        case _:
            detail = f"must be '{ROLLING}', '{ON_DELETE}', or '{RECREATE}'"
            return [invalid(path, _internal(strategy), detail)]


def _check_limits(
    strategy: UpdateStrategy, check: Callable[[Limits, Path], Errors], path: Path
) -> Errors:
    limits = strategy.rolling_update
    place = path.child("rollingUpdate")
    if limits is None:
        return [required(place)]
    if not isinstance(limits, dict):
        return [invalid(place, limits, "must be a map")]
    return check(limits, place)


def _check_deployment_limits(limits: Limits, path: Path) -> Errors:
    unavailable, surge = limits.get("maxUnavailable"), limits.get("maxSurge")
    place = path.child("maxUnavailable")
    found = _check_amount(unavailable, place) + _check_amount(surge, path.child("maxSurge"))
    if _number(unavailable) == 0 and _number(surge) == 0:
        found.append(invalid(place, unavailable, "may not be 0 when `maxSurge` is 0"))
    return found + _check_share(unavailable, place)


def _check_daemon_limits(limits: Limits, path: Path) -> Errors:
    unavailable, surge = limits.get("maxUnavailable"), limits.get("maxSurge")
    place, surge_place = path.child("maxUnavailable"), path.child("maxSurge")
    found = _check_amount(unavailable, place) + _check_amount(surge, surge_place)
    found += _check_share(unavailable, place) + _check_share(surge, surge_place)
    if _number(unavailable) != 0 and _number(surge) != 0:
        found.append(invalid(surge_place, surge, "may not be set when maxUnavailable is non-zero"))
    elif _number(unavailable) == 0 and _number(surge) == 0:
        found.append(required(place, "cannot be 0 when maxSurge is 0"))
    return found


def _check_stateful_limits(limits: Limits, path: Path) -> Errors:
    partition = limits.get("partition")
    found: Errors = []
    if isinstance(partition, int):
        found += not_negative(partition, path.child("partition"))
    unavailable = limits.get("maxUnavailable")
    if unavailable is None:
        return found
    place = path.child("maxUnavailable")
    found += _check_amount(unavailable, place)
    if _number(unavailable) == 0:
        found.append(invalid(place, unavailable, "cannot be 0"))
    return found + _check_share(unavailable, place)


# --- amounts ------------------------------------------------------------------------------


def _check_amount(amount: Any, path: Path) -> Errors:
    match amount:
        case str():
            return [] if _is_percent(amount) else [invalid(path, amount, _PERCENT_RULE)]
        case int() if not isinstance(amount, bool):
            return not_negative(amount, path)
        case None:
            return []  # It is zero.
        case _:
            return [invalid(path, amount, _NO_AMOUNT)]


def _check_share(amount: Any, path: Path) -> Errors:
    if isinstance(amount, str) and _is_percent(amount) and _number(amount) > 100:
        return [invalid(path, amount, "must not be greater than 100%")]
    return []


def _number(amount: Any) -> int:
    """Return the number of an amount; zero if it has none."""
    if isinstance(amount, str):
        digits = amount.removesuffix("%")
        is_number = digits.isascii() and digits.isdigit()
        return int(digits[:20]) if is_number else 0
    return amount if isinstance(amount, int) else 0


# --- unknown strategies -------------------------------------------------------------------


def _unknown_strategy(
    strategy: UpdateStrategy, supported: tuple[str, ...], path: Path
) -> FieldError:
    return not_supported(path, _internal(strategy), supported)


def _internal(strategy: UpdateStrategy) -> dict[str, Any]:
    """Return the strategy as Kubernetes shows it in errors: with the names of its Go fields."""
    return {"Type": strategy.type, "RollingUpdate": _internal_limits(strategy.rolling_update)}


def _internal_limits(limits: Any) -> Any:
    if not isinstance(limits, dict):
        return limits
    return {f"{name[:1].upper()}{name[1:]}": limit for name, limit in limits.items()}
