"""Durations on the command line, as Go's programs take them: 90s, 1h30m, 500ms."""

from __future__ import annotations

import re

import click

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


class Duration(click.ParamType[float]):
    """A duration between two bounds, as seconds."""

    name = "duration"

    def __init__(self, minimum_s: float, maximum_s: float) -> None:
        self._minimum_s = minimum_s
        self._maximum_s = maximum_s

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse a duration into seconds."""
        if isinstance(value, float):
            return value
        text = str(value)
        parts = _PART.findall(text)
        if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
            self.fail(f"{text!r} is no duration such as 90s or 1h30m", param, ctx)
        seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
        if not self._minimum_s <= seconds <= self._maximum_s:
            bounds = f"{self._minimum_s:g}s to {self._maximum_s:g}s"
            self.fail(f"{text!r} is not in {bounds}", param, ctx)
        return seconds
