"""The wire format of protobuf: tags, varints and lengths, and how to skip unknown fields.

tag     number of a field times eight, plus its wire type
shape   the few fields of a small message, read in one go into a dict

Whatever is wrong is a WireError. It says the fact; the place is put together on the way up, and the
envelope turns both into one error.
"""

from __future__ import annotations

from moorage.api.field_path import Segment

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)

VARINT_BYTES_MAX = 10
NUMBER_MAX = 2**31 - 1  # Kubernetes takes more than protobuf allows.
GROUPS_MAX = 32  # groups in one another, of which Kubernetes writes none

_MASK64 = 2**64 - 1


class WireError(Exception):
    """An error in bytes or a tree, with the segments of its path, innermost first."""

    def __init__(self, fact: str) -> None:
        super().__init__(fact)
        self.fact = fact
        self.place: list[Segment] = []


def truncated() -> WireError:
    """Return the error of bytes that stop before their end."""
    return WireError("the bytes end too early")


def tag_of(number: int, wire_type: int) -> int:
    """Return the tag of a field."""
    return number << 3 | wire_type


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the unsigned number at a position, and the position after it."""
    value = shift = 0
    for position in range(at, min(end, at + VARINT_BYTES_MAX)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK64, position + 1
        shift += 7
    raise (
        truncated() if at + VARINT_BYTES_MAX > end else WireError("a number has more than 64 bits")
    )


def span(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return where a length-delimited value at a position starts and stops."""
    size, start = varint(data, at, end)
    if size > end - start:
        raise truncated()
    return start, start + size


def pass_over(tag: int, data: bytes, at: int, end: int, *, depth: int = 0) -> int:
    """Return the position after a value that is of no interest."""
    match tag & 7:
        case 0:
            return varint(data, at, end)[1]
        case 1:
            after = at + 8
        case 2:
            return span(data, at, end)[1]
        case 3:
            return _after_group(data, at, end, depth=depth + 1)
        case 5:
            after = at + 4
        case 4:
            raise WireError("a group ends that has not begun")
        case other:
            raise WireError(f"there is no wire type {other}")
    if after > end:
        raise truncated()
    return after


def _after_group(data: bytes, at: int, end: int, *, depth: int) -> int:
    if depth > GROUPS_MAX:
        raise WireError(f"more than {GROUPS_MAX} groups in one another")
    while True:
        tag, at = varint(data, at, end)
        if tag & 7 == GROUP_END:
            return at
        at = pass_over(tag, data, at, end, depth=depth)


def check_unknown(tag: int, numbers: frozenset[int]) -> None:
    """Check that a tag nobody expects is of an unknown field, and not of one in a wrong form."""
    number = tag >> 3
    if number in numbers:
        raise WireError(f"field {number} has the wrong wire type {tag & 7}")
    if not 1 <= number <= NUMBER_MAX:
        raise WireError(f"there is no field number {number}")


class WireFields:
    """The fields of a small message by name: numbers as they are, the rest as start and stop."""

    def __init__(self, **tags: int) -> None:
        self._names = {tag: name for name, tag in tags.items()}
        self._numbers = frozenset(tag >> 3 for tag in tags.values())

    def read(self, data: bytes, at: int, end: int) -> dict[str, tuple[int, int]]:
        """Return the fields that are set; a number is the first of its pair."""
        found: dict[str, tuple[int, int]] = {}
        while at < end:
            tag, at = varint(data, at, end)
            name = self._names.get(tag)
            if name is None:
                check_unknown(tag, self._numbers)
                at = pass_over(tag, data, at, end)
            elif tag & 7 == LENGTH:
                found[name] = span(data, at, end)
                at = found[name][1]
            else:
                value, at = varint(data, at, end)
                found[name] = value, at
        return found


def signed(value: int, bits: int) -> int:
    """Return the low bits of a number as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def encode_varint(value: int) -> bytes:
    """Return the bytes of a number; a negative one takes ten, as in Go."""
    if 0 <= value < 0x80:
        return _SMALL[value]
    value &= _MASK64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = tuple(bytes([value]) for value in range(0x80))


def delimited(payload: bytes) -> bytes:
    """Return bytes with their length in front."""
    return encode_varint(len(payload)) + payload
