"""What may have been meant by an attribute or domain that no device has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from mooring.insight.expressions.fleet import Fleet
from mooring.insight.expressions.reads import MAPS, Read
from mooring.insight.nearness import nearest
from mooring.insight.wording import counted, shown

NAMES_SHOWN_MAX: Final = 8
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def written(read: Read, *, optional: bool = False) -> str:
    """Return a place as an expression reads it."""
    mark = "?" if optional else ""
    text = f"device.{read.field}[{shown(read.domain)}]"
    if not read.name:
        return text
    if _IDENTIFIER.fullmatch(read.name):
        return f"{text}.{mark}{read.name}"
    return f"{text}[{mark}{shown(read.name)}]"


def qualified(read: Read) -> str | None:
    """Return an attribute as a constraint names it; None if it is no attribute."""
    is_attribute = read.field == "attributes" and read.name
    return f"{read.domain}/{read.name}" if is_attribute else None


def did_you_mean(read: Read, fleet: Fleet, *, write: Callable[[Read], str | None] = written) -> str:
    """Return the nearest thing that devices have, and how many have it."""
    for candidate in _candidates(read, fleet):
        text = write(candidate)
        if text is not None:
            devices = fleet.carriers[candidate]
            verb = "has" if devices == 1 else "have"
            return f"did you mean {text}? {devices:,} of {counted(len(fleet), 'device')} {verb} it"
    return _what_there_is(read, fleet)


def _candidates(read: Read, fleet: Fleet) -> Iterator[Read]:
    """Give what may have been meant, likeliest first."""
    known = fleet.carriers
    (other,) = (field for field in MAPS if field != read.field)
    if read._replace(field=other) in known:
        yield read._replace(field=other)
    domains = {r.domain for r in known if r.field == read.field}
    if read.domain not in domains:
        near = nearest(read.domain, domains)
        if near is not None:
            read = read._replace(domain=near)
            if read in known:
                yield read
    names = {r.name for r in known if r[:2] == read[:2] and r.name}
    if near_name := nearest(read.name, names):
        yield read._replace(name=near_name)
    for elsewhere in sorted(known):
        if read.name and elsewhere.name == read.name:
            yield elsewhere


def _what_there_is(read: Read, fleet: Fleet) -> str:
    names = sorted({r.name for r in fleet.carriers if r[:2] == read[:2] and r.name})
    if names:
        return f"{written(Read(read.field, read.domain))} has {_some(names)}"
    domains = sorted({r.domain for r in fleet.carriers if r.field == read.field})
    return f"devices have {read.field} in {_some(domains)}" if domains else "no device has any"


def _some(names: list[str]) -> str:
    shown_names = names[:NAMES_SHOWN_MAX]
    more = len(names) - len(shown_names)
    return ", ".join([*shown_names, f"{more:,} more"] if more else shown_names)
