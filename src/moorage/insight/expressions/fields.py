"""Fields that no device has, and the fields that may have been meant.

device.attributes["d"].productname                  another spelling
device.attributes["nvidia.com"].productName         another domain
device.attributes["d"].memory                       a capacity
device.attributes["d"].model == "H100"              the attribute that has such a value
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from moorage.api.quantity import Quantity
from moorage.cel.lang import ast
from moorage.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind
from moorage.insight.expressions.paths import DevicePath
from moorage.insight.expressions.published_devices import (
    Carriers,
    PublishedDevice,
    PublishedDevices,
    similar_fields,
    written,
)
from moorage.insight.expressions.syntax import DeviceField, DeviceRead
from moorage.insight.messages import counted, fitting

OPTIONS_MAX: Final = 6
SEEN: Final = 256  # devices that are asked whether a capacity counts bytes
_BYTES: Final = Quantity.parse("1Mi")
NAMES_SHOWN_MAX: Final = 8
NOUNS: Final = {"attributes": "attribute", "capacity": "capacity"}


# --- what was meant -------------------------------------------------------------------------


def fields_with_value(
    asked: Any, known: Iterable[DeviceField], devices: Sequence[PublishedDevice]
) -> Iterator[DeviceField]:
    """Yield the attributes that have a value on some device."""
    for read in sorted(each for each in known if each.name and each.field == "attributes"):
        for device in devices:
            value = device.value(read)
            if value is not None and (value == asked and type(value) is type(asked)):
                yield read
                break


def _amount_of_bytes(
    read: DeviceField, known: Iterable[DeviceField], fleet: PublishedDevices
) -> list[DeviceField]:
    """Return the only capacity of a domain that counts bytes, which drivers name differently."""
    if read.field != "capacity" or not read.name:
        return []
    found = [
        each
        for each in known
        if each[:2] == read[:2]
        and any((device.value(each) or Quantity.ZERO) >= _BYTES for device in fleet.devices[:SEEN])
    ]
    return found if len(found) == 1 else []


# --- mistakes -------------------------------------------------------------------------------


def unknown_field(
    reading: DeviceRead,
    candidates: Carriers,
    fleet: PublishedDevices,
    having: Iterable[DeviceField] = (),
) -> Mistake:
    """Return what is wrong with a field that no candidate has, and the fields meant.

    `having` are fields that have the value with which this one is compared.
    """
    read = reading.read
    known = [each for each in candidates if bool(each.name) is bool(read.name)]
    meant = similar_fields(read, known)
    meant += [each for each in having if each not in meant]
    meant = meant or _amount_of_bytes(read, known, fleet)
    kind = MistakeKind.FIELD
    if not fleet.carriers[DeviceField(read.field, read.domain)]:
        kind = MistakeKind.DOMAIN
    options = tuple(
        Option(
            RepairKind.NAME,
            f"use {written(new)} instead of {shortly(read, new)}",
            {reading.node.id: as_read(reading.node, new)},
            cause=_cause(read, [new], fleet),
        )
        for new in meant[:OPTIONS_MAX]
    )
    return Mistake(kind, _cause(read, meant, fleet), options, written(read))


def irregular_path(
    path: DevicePath, meant: Sequence[DeviceField], text: str, fleet: PublishedDevices
) -> Mistake:
    """Return what is wrong with a path that is not divided into domain and name."""
    new = meant[0]
    noun = NOUNS[new.field]
    facts = [
        f'{text} is no {noun}: {new.name} is in domain "{new.domain}"',
        f'{noun} {new.name} is in domain "{new.domain}", which is written in brackets',
    ]
    question = f": did you mean {written(new)}?"
    cause = fitting(
        f"{facts[0]}{question} {_count_text(new, fleet)}", f"{facts[0]}{question}", *facts
    )
    options = tuple(
        Option(
            RepairKind.NAME,
            f"use {written(each)} instead of {text}",
            {path.node.id: as_read(path.node, each)},
        )
        for each in meant
    )
    return Mistake(MistakeKind.FIELD, cause, options, text)


def _cause(read: DeviceField, meant: Sequence[DeviceField], fleet: PublishedDevices) -> str:
    fact = _does_not_exist(read, fleet)
    if not meant:
        return fitting(*_what_there_is(fact, read, fleet), fact)
    new = meant[0]
    if new.field != read.field and new[1:] == read[1:]:
        fact += f", it is {'a capacity' if new.field == 'capacity' else 'an attribute'}"
    question = f"{fact}: did you mean {shortly(new, read)}?"
    return fitting(f"{question} {_count_text(new, fleet)}", question, fact)


def _count_text(field: DeviceField, fleet: PublishedDevices) -> str:
    count = fleet.carriers[field]
    return f"{count:,} of {counted(len(fleet), 'device')} {'has' if count == 1 else 'have'} it"


def _does_not_exist(read: DeviceField, fleet: PublishedDevices) -> str:
    if not read.name:
        return f'no device has {read.field} in domain "{read.domain}"'
    noun = NOUNS[read.field]
    if not fleet.carriers[DeviceField(read.field, read.domain)]:
        return f'{noun} {read.name} does not exist in domain "{read.domain}"'
    return f"{noun} {read.name} does not exist"


def _what_there_is(fact: str, read: DeviceField, fleet: PublishedDevices) -> Iterator[str]:
    """Yield the fact with what devices have instead, with fewer and fewer names."""
    names = sorted({each.name for each in fleet.carriers if each[:2] == read[:2] and each.name})
    head = f"{fact}: {read.domain} has "
    if not names:
        names = sorted({each.domain for each in fleet.carriers if each.field == read.field})
        head = f"{fact}: devices have {read.field} in "
    if not names:
        yield f"{fact}: no device has any"
    for number in range(min(len(names), NAMES_SHOWN_MAX), 0, -1):
        more = len(names) - number
        yield head + ", ".join([*names[:number], f"{more:,} more"] if more else names[:number])


def shortly(read: DeviceField, other: DeviceField) -> str:
    """Return a field by name, with its domain where the other has another one."""
    if read.field != other.field or not read.name:
        return written(read)
    return read.name if read.domain == other.domain else f'{read.name} in domain "{read.domain}"'


def as_read(node: ast.Expr, field: DeviceField) -> str:
    """Return a field as the node reads its own: plainly, optionally, or by has()."""
    match node:
        case ast.Select(test_only=True):
            return f"has({written(field)})"
        case ast.Call(function="_[?_]" | "_?._"):
            return written(field, optional=True)
    return written(field)
