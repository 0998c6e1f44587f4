"""The CEL expressions that took the scheduler longest, from its metrics, for `moor status`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from moorage.client.client_factory import http_client
from moorage.client.contract import Request
from moorage.client.errors import ClientError
from moorage.client.http.rest_config import RestConfig
from moorage.scheduler.live.metrics import EXPRESSION_EVALUATIONS, EXPRESSION_SECONDS

PAGE = "/metrics"
SHOWN_MAX = 3
SHOWN_S_MIN = 0.1  # what took less is not worth a line
TEXT_SHOWN_MAX = 60  # characters

_SAMPLE = re.compile(r'^(\w+)\{expression="((?:[^"\\]|\\.)*)"\} (\S+)$')
_ESCAPED = re.compile(r"\\(.)")


class SlowExpression(Struct, frozen=True):
    """An expression, and how much work it was since the scheduler started."""

    expression: str  # its beginning, if it is long
    seconds: float
    evaluations: int

    @property
    def line(self) -> str:
        """The expression in one line."""
        text = " ".join(self.expression.split())
        if len(text) > TEXT_SHOWN_MAX:
            text = f"{text[: TEXT_SHOWN_MAX - 1]}…"
        return f"{self.seconds:.1f} s in {self.evaluations:,} evaluations of {text}"


async def fetch_slow_expressions(config: RestConfig, url: str) -> tuple[SlowExpression, ...]:
    """Return the slowest expressions by the metrics at a URL, the slowest first; none if unread."""
    try:
        async with http_client(replace(config, server=url.removesuffix(PAGE))) as client:
            answer = await client.send(Request("GET", PAGE))
    except ClientError:
        return ()
    return read_slow_expressions(answer.body.decode(errors="replace"))


def read_slow_expressions(text: str) -> tuple[SlowExpression, ...]:
    """Return the slowest expressions of a metrics page, the slowest first."""
    seconds: dict[str, float] = {}
    evaluations: dict[str, float] = {}
    for name, expression, value in _samples(text):
        if name == EXPRESSION_SECONDS:
            seconds[expression] = value
        elif name == EXPRESSION_EVALUATIONS:
            evaluations[expression] = value
    found = [
        SlowExpression(each, value, int(evaluations.get(each, 0)))
        for each, value in seconds.items()
        if value >= SHOWN_S_MIN
    ]
    return tuple(sorted(found, key=lambda each: -each.seconds)[:SHOWN_MAX])


def _samples(text: str) -> Iterator[tuple[str, str, float]]:
    for line in text.split("\n"):
        found = _SAMPLE.match(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        yield found[1], _ESCAPED.sub(_unescaped, found[2]), value


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
