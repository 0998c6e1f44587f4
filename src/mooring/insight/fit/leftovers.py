"""Leftovers: devices that stay free although a request matches them, and what keeps them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from mooring.insight.fit.limits import Full, Fullness
from mooring.insight.fit.shortages import Cause
from mooring.insight.fit.stocks import Stock
from mooring.insight.wording import counted


class Apart(Struct, frozen=True):
    """Free devices that no replica can use, and why."""

    why: str
    devices: int
    nodes: tuple[str, ...]


class Leftover(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What is left free for one request once no more replicas fit."""

    request: str
    wanted: int
    free: int
    matching: int
    percent: float  # of the devices that match
    apart: tuple[Apart, ...] = ()


def leftovers_of(stocks: Sequence[Stock], fullness: Fullness) -> tuple[Leftover, ...]:
    """Return what is left for each request that takes whole devices."""
    return tuple(_leftover(stock, fullness) for stock in stocks if stock.is_countable)


def _leftover(stock: Stock, fullness: Fullness) -> Leftover:
    matching = len(stock.matching)
    percent = round(100 * stock.free_count / matching, 1) if matching else 0.0
    return Leftover(
        stock.request,
        stock.wanted,
        stock.free_count,
        matching,
        percent,
        tuple(sorted(_apart(stock, fullness), key=lambda each: (-each.devices, each.why))),
    )


def _apart(stock: Stock, fullness: Fullness) -> Iterator[Apart]:
    by_reason: dict[str, dict[str, int]] = {}
    for node, devices in stock.free.items():
        why = _why(stock, fullness[node]) if node in fullness else "the node is not asked"
        by_reason.setdefault(why, {})[node] = len(devices)
    for why, nodes in by_reason.items():
        yield Apart(why, sum(nodes.values()), tuple(nodes))


def _why(stock: Stock, full: Full) -> str:
    """Return what keeps the devices of a request from being used on a node."""
    if not full.shortages:
        return ", ".join(full.texts)
    own = [short for short in full.shortages if short.request == stock.request]
    if not own:
        others = dict.fromkeys(short.request for short in full.shortages)
        return f"nothing is left there for {', '.join(others)}"
    if any(short.cause is Cause.TOGETHER for short in own):
        return "the requests are in each other's way"
    if any(short.usable >= short.wanted for short in own):
        attributes = dict.fromkeys(short.attribute for short in own)
        return f"not {stock.wanted} with {own[0].detail} {', '.join(attributes)}"
    return f"a node has fewer than the {counted(stock.wanted, 'device')} that are wanted"
