"""Kubernetes' functions of IP addresses: `ip('::1').isLoopback()`.

Texts are parsed as Go's netip does, with its errors. Zones (`fe80::1%eth0`) and IPv4 addresses in
IPv6 (`::ffff:1.2.3.4`) are addresses to Go, and URLs may have them, but CEL refuses them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from moorage.cel.lang.costs import traverses_first
from moorage.cel.lang.environment import Library, functions_of, members_of
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.types import BOOL, INT, STRING, opaque
from moorage.kit.go_quote import go_quote

IP_TYPE: Final = opaque("net.IP")

V4_BITS: Final = 32
V6_BITS: Final = 128
_V6_BYTES: Final = 16
_MAPPED_V4: Final = 0xFFFF  # the bits above the 32 bits of an IPv4 address in IPv6
_leading_digits = re.compile("[0-9A-Fa-f]*").match


class AddressError(Exception):
    """A text that is no address, with Go's message."""

    def __init__(self, text: str, message: str, at: str = "") -> None:
        where = f" (at {go_quote(at)})" if at else ""
        super().__init__(f"ParseAddr({go_quote(text)}): {message}{where}")


@dataclass(frozen=True, slots=True)
class IP:
    """An address: a number of 32 or 128 bits."""

    bits: int
    number: int
    zone: str = ""

    @property
    def is_v4(self) -> bool:
        """Whether it is an IPv4 address."""
        return self.bits == V4_BITS

    @property
    def is_mapped_v4(self) -> bool:
        """Whether it is an IPv4 address written as an IPv6 one."""
        return not self.is_v4 and self.number >> V4_BITS == _MAPPED_V4

    def top(self, bits: int) -> int:
        """Return the first bits as a number."""
        return self.number >> (self.bits - bits)

    @property
    def cel_size(self) -> int:
        """The size that costs depend on: the number of bytes."""
        return self.bits // 8

    def __str__(self) -> str:
        text = _v4_text(self.number) if self.is_v4 else _v6_text(self.number)
        return f"{text}%{self.zone}" if self.zone else text


def _v4_text(number: int) -> str:
    return ".".join(map(str, number.to_bytes(4)))


def _v6_text(number: int) -> str:
    """Return the shortest form: the first of the longest runs of zeros becomes `::`."""
    groups = [number >> shift & 0xFFFF for shift in range(112, -1, -16)]
    start, length = 0, 1  # One zero alone stays.
    for first in range(8):
        last = first
        while last < 8 and groups[last] == 0:
            last += 1
        if last - first > length:
            start, length = first, last - first
    if length == 1:
        return ":".join(f"{group:x}" for group in groups)
    before = ":".join(f"{group:x}" for group in groups[:start])
    after = ":".join(f"{group:x}" for group in groups[start + length :])
    return f"{before}::{after}"


# --- parsing --------------------------------------------------------------------------------------


def parse_ip(text: str) -> IP:
    """Return the address that CEL accepts in a text, or raise EvalError with Kubernetes' text."""
    try:
        address = parse_address(text)
    except AddressError as error:
        raise EvalError(
            f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        ) from None
    if address.zone:
        raise EvalError(f"IP address {go_quote(text)} with zone value is not allowed")
    if address.is_mapped_v4:
        raise EvalError(mapped_v4_refused(text))
    return address


def mapped_v4_refused(text: str) -> str:
    """Return why an IPv4 address in IPv6 is refused."""
    return f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed"


def parse_address(text: str) -> IP:
    """address = IPv4 | IPv6 [ "%" zone ]; the first of ".", ":" and "%" decides."""
    decisive = next((character for character in text if character in ".:%"), "")
    if decisive == ".":
        return IP(V4_BITS, int.from_bytes(_v4_bytes(text, text)))
    if decisive == ":":
        return _parse_v6(text)
    raise AddressError(text, "missing IPv6 address" if decisive else "unable to parse IP")


def _v4_bytes(whole: str, text: str) -> bytes:
    """IPv4 = octet "." octet "." octet "." octet, and octet = 0 to 255 without leading zeros

    The whole is what errors show.
    """
    octets = bytearray()
    digits = ""
    for place, character in enumerate(text):
        if character in "0123456789":
            if digits == "0":
                raise AddressError(whole, "IPv4 field has octet with leading zero")
            digits += character
            if int(digits) > 255:
                raise AddressError(whole, "IPv4 field has value >255")
        elif character == ".":
            if not digits or place == len(text) - 1:
                at = text[place:]
                raise AddressError(whole, "IPv4 field must have at least one digit", at)
            if len(octets) == 3:
                raise AddressError(whole, "IPv4 address too long")
            octets.append(int(digits))
            digits = ""
        else:
            raise AddressError(whole, "unexpected character", text[place:])
    if len(octets) < 3:
        raise AddressError(whole, "IPv4 address too short")
    return bytes(octets) + bytes([int(digits)])


def _parse_v6(text: str) -> IP:
    """IPv6 = group *( ":" group ) with one "::" for missing groups, maybe IPv4 as the last two

    1. Take off the zone. 2. Read groups, noting the position of "::". 3. Put zeros there.
    """
    rest, has_zone, zone = text.partition("%")
    if has_zone and not zone:
        raise AddressError(text, "zone must be a non-empty string")
    octets, gap = _v6_groups(text, rest)
    missing = _V6_BYTES - len(octets)
    if missing and gap is None:
        raise AddressError(text, "address string too short")
    if not missing and gap is not None:
        raise AddressError(text, "the :: must expand to at least one field of zeros")
    if gap is not None:
        octets[gap:gap] = bytes(missing)
    return IP(V6_BITS, int.from_bytes(octets), zone)


def _v6_groups(whole: str, rest: str) -> tuple[bytearray, int | None]:
    """Return the bytes that are written, and the position of "::" among them."""
    octets = bytearray()
    gap: int | None = None
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
    while rest and len(octets) < _V6_BYTES:
        group = _group(whole, rest)
        after = rest[len(group) :]
        if after.startswith("."):
            _check_space_for_v4(whole, rest, len(octets), has_gap=gap is not None)
            return octets + _v4_bytes(whole, rest), gap
        octets += int(group, 16).to_bytes(2)
        if not after:
            return octets, gap
        rest = _after_colon(whole, after)
        if rest.startswith(":"):
            if gap is not None:
                raise AddressError(whole, "multiple :: in address", rest)
            gap, rest = len(octets), rest[1:]
    if rest:
        raise AddressError(whole, "trailing garbage after address", rest)
    return octets, gap


def _group(whole: str, rest: str) -> str:
    """group = 1 to 4 hexadecimal digits"""
    found = _leading_digits(rest)
    digits = found.group() if found else ""
    if len(digits) > 4:
        raise AddressError(whole, "each group must have 4 or less digits", rest)
    if not digits:
        message = "each colon-separated field must have at least one digit"
        raise AddressError(whole, message, rest)
    return digits


def _check_space_for_v4(whole: str, rest: str, octets: int, *, has_gap: bool) -> None:
    if not has_gap and octets != _V6_BYTES - 4:
        message = "embedded IPv4 address must replace the final 2 fields of the address"
        raise AddressError(whole, message, rest)
    if octets > _V6_BYTES - 4:
        message = "too many hex fields to fit an embedded IPv4 at the end of the address"
        raise AddressError(whole, message, rest)


def _after_colon(whole: str, rest: str) -> str:
    if not rest.startswith(":"):
        raise AddressError(whole, "unexpected character, want colon", rest)
    if rest == ":":
        raise AddressError(whole, "colon must be followed by more characters", rest)
    return rest[1:]


# --- functions ------------------------------------------------------------------------------------


def _is_unspecified(address: IP) -> bool:
    return address.number == 0


def _is_loopback(address: IP) -> bool:
    return address.top(8) == 127 if address.is_v4 else address.number == 1


def _is_multicast(address: IP) -> bool:
    return address.top(4) == 0xE if address.is_v4 else address.top(8) == 0xFF


def _is_link_local_multicast(address: IP) -> bool:
    if address.is_v4:
        return address.top(24) == 0xE00000
    return address.top(16) & 0xFF0F == 0xFF02


def _is_link_local_unicast(address: IP) -> bool:
    return address.top(16) == 0xA9FE if address.is_v4 else address.top(10) == 0xFE80 >> 6


def _is_global_unicast(address: IP) -> bool:
    """Private addresses are global here, as they are to Go."""
    is_broadcast = address.is_v4 and address.number == 2**V4_BITS - 1
    return not (
        is_broadcast
        or _is_unspecified(address)
        or _is_loopback(address)
        or _is_multicast(address)
        or _is_link_local_unicast(address)
    )


def _is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except EvalError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


# --- declarations ---------------------------------------------------------------------------------


def library() -> Library:
    """Return the library `kubernetes.net.ip`."""
    text, address = (STRING,), (IP_TYPE,)
    # `isCanonical` parses the text, and then compares it with the result.
    return Library(
        "kubernetes.net.ip",
        functions=(
            functions_of("ip", ("string_to_ip", text, IP_TYPE, parse_ip), costs=traverses_first()),
            functions_of("isIP", ("is_ip", text, BOOL, _is_ip), costs=traverses_first()),
            functions_of(
                "ip.isCanonical",
                ("ip_is_canonical", text, BOOL, _is_canonical),
                costs=traverses_first(times=2),
            ),
            functions_of("string", ("ip_to_string", address, STRING, str)),
            members_of("family", ("ip_family", address, INT, lambda ip: 4 if ip.is_v4 else 6)),
            *(members_of(name, (id_, address, BOOL, test)) for name, id_, test in _TESTS),
        ),
        types=(IP_TYPE,),
        python_types={IP: IP_TYPE},
    )


_TESTS: Final = (
    ("isUnspecified", "ip_is_unspecified", _is_unspecified),
    ("isLoopback", "ip_is_loopback", _is_loopback),
    ("isLinkLocalMulticast", "ip_is_link_local_multicast", _is_link_local_multicast),
    ("isLinkLocalUnicast", "ip_is_link_local_unicast", _is_link_local_unicast),
    ("isGlobalUnicast", "ip_is_global_unicast", _is_global_unicast),
)
