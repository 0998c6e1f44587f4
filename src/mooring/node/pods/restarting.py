"""Whether a container that ended runs again, and when (pure).

A container that ends runs again at once the first time; then after 10 s, 20 s, … up to five
minutes, counted from when it ended. One that ran for ten minutes begins anew.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec import Struct

from mooring.api.core import Container, Pod
from mooring.api.timestamp import Timestamp
from mooring.node.runtime.contract import ContainerState

FIRST_S = 10.0
LONGEST_S = 300.0
FORGOTTEN_S = 2 * LONGEST_S

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
RESTART = "Restart"


class Crash(Struct, frozen=True):
    """How long a container waits when it ends the next time."""

    delay_s: float
    since: Timestamp  # the end that made it so


def runs_again(pod: Pod, container: Container, exit_code: int) -> bool:
    """Tell whether a container that ended is to be started again."""
    policy = container.restart_policy or pod.spec.restart_policy or ALWAYS
    if container.restart_policy and _has_rule(container, exit_code):
        return True
    return policy == ALWAYS or (policy == ON_FAILURE and exit_code != 0)


def _has_rule(container: Container, exit_code: int) -> bool:
    """Tell whether the first rule that is about this exit code says to start again."""
    for rule in container.restart_policy_rules:
        if isinstance(rule, dict) and _is_about(rule.get("exitCodes"), exit_code):
            return bool(rule.get("action") == RESTART)
    return False


def _is_about(wanted: Any, exit_code: int) -> bool:
    if not isinstance(wanted, dict):
        return False
    is_listed = exit_code in (wanted.get("values") or ())
    return is_listed == (wanted.get("operator") == "In")


def wait_until(crash: Crash | None, ended: ContainerState) -> Timestamp | None:
    """Return until when an ended container waits to run again; None: it does not wait."""
    finished = ended.finished_at or ended.started_at
    if crash is None or _is_forgotten(crash, finished):
        return None
    return Timestamp(finished.instant + timedelta(seconds=crash.delay_s))


def next_crash(crash: Crash | None, ended: ContainerState) -> Crash:
    """Return how long a container waits the next time, once it runs again after an end."""
    finished = ended.finished_at or ended.started_at
    if crash is None or _is_forgotten(crash, finished):
        return Crash(FIRST_S, finished)
    return Crash(min(2 * crash.delay_s, LONGEST_S), finished)


def _is_forgotten(crash: Crash, finished: Timestamp) -> bool:
    return (finished.instant - crash.since.instant).total_seconds() > FORGOTTEN_S
