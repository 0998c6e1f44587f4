"""How long the containers of a simulated pod run, and how they end.

1. A pod that is restarted always runs until it is deleted.
2. The annotation `mooring.dev/runs-for: 90s` says it, with `mooring.dev/exits-with: "1"` for a pod
   that fails.
3. Else the longest of its containers counts, by what their commands say: `sleep 30`, `true`,
   `false`, `echo …`, `tail -f …`, and lines of these in `sh -c`. Any other program runs for five
   seconds and ends well.

`runs-for: forever` says that a pod, or a container, runs until it is stopped.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from mooring.api.core import Pod

RUNS_FOR = "mooring.dev/runs-for"
EXITS_WITH = "mooring.dev/exits-with"
FOREVER = "forever"
PROGRAM_S = 5.0
TEXT_MAX = 10_000

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)?")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SHELLS = ("sh", "bash", "ash", "dash")
_BETWEEN = re.compile(r"&&|\|\||[;\n]")
_FOREVER = frozenset(("while", "until", "for", "tail", "wait", "pause", "cat"))
_AT_ONCE = frozenset(("echo", "printf", "true", "set", "export", "env", "ls", "date", ":", "trap"))


class End(NamedTuple):
    """After how long a pod ends, and with which exit code."""

    after_s: float
    code: int = 0


def end_of(pod: Pod) -> End | None:
    """Return how a pod ends; None if it runs until it is deleted."""
    if pod.spec.restart_policy in ("", "Always"):
        return None
    annotations = pod.metadata.annotations
    if annotations.get(RUNS_FOR) == FOREVER:
        return None
    asked = _asked(annotations)
    if asked is not None:
        return asked
    ends = [_end((*each.command, *each.args)) for each in pod.spec.containers]
    if any(each is None for each in ends):
        return None
    known = [each for each in ends if each is not None]
    worst = End(max(each.after_s for each in known), max(each.code for each in known))
    # What fails is started again, and again.
    return None if worst.code and pod.spec.restart_policy == "OnFailure" else worst


def end_of_container(words: tuple[str, ...], annotations: Mapping[str, str]) -> End | None:
    """Return how a container with this command ends; None if it runs until it is stopped."""
    if annotations.get(RUNS_FOR) == FOREVER:
        return None
    return _asked(annotations) or _end(words)


def annotations_for(pod: Pod, container: str) -> dict[str, str]:
    """Return a pod's annotations, with how long a container of it runs if that is settled.

    Init containers end at once, sidecars and containers of pods that are restarted always do not.
    """
    annotations = pod.metadata.annotations
    for each in pod.spec.init_containers:
        if each.name == container:
            return {**annotations, RUNS_FOR: FOREVER if each.is_sidecar else "0s", EXITS_WITH: "0"}
    is_restarted = pod.spec.restart_policy in ("", "Always")
    return {**annotations, RUNS_FOR: FOREVER} if is_restarted else {**annotations}


def _asked(annotations: Mapping[str, str]) -> End | None:
    """Return what annotations say of the end."""
    asked_s = _seconds(annotations.get(RUNS_FOR, ""))
    if asked_s is None:
        return None
    return End(asked_s, _code(annotations.get(EXITS_WITH, "0")))


def _end(words: tuple[str, ...]) -> End | None:
    """Return how a command ends."""
    match words:
        case (shell, "-c" | "-ec" | "-exc", text, *_) if _name(shell) in _SHELLS:
            return _script(text)
        case ("sleep", duration):
            seconds = _seconds(duration)
            return None if seconds is None else End(seconds)
        case ("false",):
            return End(0.0, 1)
        case (first, *_) if _name(first) in _FOREVER:
            return None
        case (first, *_) if _name(first) in _AT_ONCE:
            return End(0.0)
    return End(PROGRAM_S)


def _script(text: str) -> End | None:
    """Return how a line of commands ends: one after the other, until one exits."""
    after_s = 0.0
    end: End | None = End(0.0)
    for part in _BETWEEN.split(text[:TEXT_MAX]):
        try:
            words = tuple(shlex.split(part, comments=True))
        except ValueError:
            words = (part,)
        if not words:
            continue
        if words[0] == "exit":
            return End(after_s, _code(words[1] if len(words) > 1 else "0"))
        end = _end(words)
        if end is None:
            return None
        after_s += end.after_s
    return End(after_s, 0 if end is None else end.code)


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def _code(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0


def _seconds(text: str) -> float | None:
    found = _DURATION.fullmatch(text)
    return None if found is None else float(found[1]) * _UNITS_S[found[2] or "s"]
