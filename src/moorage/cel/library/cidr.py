"""Kubernetes' functions of networks: `cidr('10.0.0.0/8').containsIP('10.1.2.3')`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from moorage.cel.lang.costs import (
    Argument,
    Arguments,
    CallEstimate,
    Range,
    add,
    exactly,
    traversal,
    traversal_cost,
    traverses_first,
)
from moorage.cel.lang.environment import (
    Costs,
    Function,
    Library,
    Overload,
    functions_of,
    members_of,
)
from moorage.cel.lang.errors import EvalError, no_such_overload
from moorage.cel.lang.types import BOOL, INT, STRING, Type, opaque
from moorage.cel.lang.values import INT_MAX
from moorage.cel.library.ip import (
    IP,
    IP_TYPE,
    AddressError,
    mapped_v4_refused,
    parse_address,
    parse_ip,
)
from moorage.kit.go_quote import go_quote

CIDR_TYPE: Final = opaque("net.CIDR")

_ADDRESS_BYTES: Final = Range(4, 16)
_is_bits = re.compile("[0-9]|[1-9][0-9]*").fullmatch


@dataclass(frozen=True, slots=True)
class CIDR:
    """A network: an address, and how many of its leading bits all its addresses share."""

    ip: IP
    length: int

    def contains(self, address: IP) -> bool:
        """Return whether an address is in the network."""
        return address.bits == self.ip.bits and address.top(self.length) == self.ip.top(self.length)

    def contains_network(self, other: CIDR) -> bool:
        """Return whether all addresses of another network are in this one."""
        return self.length <= other.length and self.contains(other.ip)

    def masked(self) -> CIDR:
        """Return the network with the bits behind its length cleared."""
        shift = self.ip.bits - self.length
        return CIDR(IP(self.ip.bits, self.ip.number >> shift << shift), self.length)

    @property
    def cel_size(self) -> int:
        """The size that costs depend on: the bytes that the length covers."""
        return math.ceil(self.length / 8)

    def __str__(self) -> str:
        return f"{self.ip}/{self.length}"


# --- parsing --------------------------------------------------------------------------------------


def parse_cidr(text: str) -> CIDR:
    """Return the network in a text, or raise EvalError with Kubernetes' message."""
    try:
        network = _parse_prefix(text)
    except _PrefixError as error:
        raise EvalError(_not_parsed(_not_parsed(str(error)))) from None
    if network.ip.is_mapped_v4:
        raise EvalError(_not_parsed(mapped_v4_refused(text)))
    return network


def _not_parsed(message: str) -> str:
    return f"network address parse error during conversion from string: {message}"


class _PrefixError(Exception):
    """A text that is no network, with Go's message."""

    def __init__(self, text: str, message: str) -> None:
        super().__init__(f"netip.ParsePrefix({go_quote(text)}): {message}")


def _parse_prefix(text: str) -> CIDR:
    """network = address "/" length, the length without sign and leading zeros"""
    address_text, slash, length = text.rpartition("/")
    if not slash:
        raise _PrefixError(text, "no '/'")
    try:
        address = parse_address(address_text)
    except AddressError as error:
        raise _PrefixError(text, str(error)) from None
    if address.zone:
        raise _PrefixError(text, "IPv6 zones cannot be present in a prefix")
    # Go reads an int64 first; what is larger is no number, not a number out of range.
    if not _is_bits(length) or len(length) > 19 or int(length) > INT_MAX:
        raise _PrefixError(text, f"bad bits after slash: {go_quote(length)}")
    if int(length) > address.bits:
        raise _PrefixError(text, "prefix length out of range")
    return CIDR(address, int(length))


# --- functions ------------------------------------------------------------------------------------


def _is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except EvalError:
        return False
    return True


def _contains_ip_text(network: CIDR, text: str) -> bool:
    try:
        address = parse_ip(text)
    except EvalError:
        # Kubernetes loses the error of the text here, unlike in containsCIDR.
        raise no_such_overload() from None
    return network.contains(address)


def _contains_cidr_text(network: CIDR, text: str) -> bool:
    return network.contains_network(parse_cidr(text))


# --- costs ----------------------------------------------------------------------------------------


def _containment_costs(*, is_of_network: bool, is_of_text: bool) -> Costs:
    """Return the costs of comparing bytes: of two networks also their masks, of a text also it."""

    def cost(args: tuple[Any, ...], _result: Any) -> int:
        total = traversal_cost(args[0], 2)
        if is_of_network:
            total += traversal_cost(args[0]) + 1
        if is_of_text:
            total += traversal_cost(args[1])
        return total

    def estimate(_target: Argument | None, args: Arguments) -> CallEstimate:
        total = traversal(add(_ADDRESS_BYTES, _ADDRESS_BYTES))
        if is_of_network:
            total = add(total, traversal(_ADDRESS_BYTES), exactly(1))
        if is_of_text:
            total = add(total, traversal(args[0].size))
        return CallEstimate(total)

    return cost, estimate


# --- declarations ---------------------------------------------------------------------------------


def library() -> Library:
    """Return the library `kubernetes.net.cidr`."""
    text, network = (STRING,), (CIDR_TYPE,)
    parsed = traverses_first()
    return Library(
        "kubernetes.net.cidr",
        functions=(
            functions_of("cidr", ("string_to_cidr", text, CIDR_TYPE, parse_cidr), costs=parsed),
            functions_of("isCIDR", ("is_cidr", text, BOOL, _is_cidr), costs=parsed),
            functions_of("string", ("cidr_to_string", network, STRING, str)),
            members_of("ip", ("cidr_ip", network, IP_TYPE, attrgetter("ip"))),
            members_of("prefixLength", ("cidr_prefix_length", network, INT, attrgetter("length"))),
            members_of("masked", ("cidr_masked", network, CIDR_TYPE, CIDR.masked)),
            # Values before texts: a call whose argument the checker does not know costs as the
            # first.
            Function(
                "containsIP",
                (
                    _containment("cidr_contains_ip_ip", IP_TYPE, CIDR.contains),
                    _containment("cidr_contains_ip_string", STRING, _contains_ip_text),
                ),
            ),
            Function(
                "containsCIDR",
                (
                    _containment("cidr_contains_cidr", CIDR_TYPE, CIDR.contains_network),
                    _containment("cidr_contains_cidr_string", STRING, _contains_cidr_text),
                ),
            ),
        ),
        types=(CIDR_TYPE,),
        python_types={CIDR: CIDR_TYPE, IP: IP_TYPE},
    )


def _containment(id_: str, other: Type, evaluate: Callable[..., Any]) -> Overload:
    is_of_network, is_of_text = id_.startswith("cidr_contains_cidr"), other is STRING
    costs = _containment_costs(is_of_network=is_of_network, is_of_text=is_of_text)
    return Overload(id_, (CIDR_TYPE, other), BOOL, evaluate, True, *costs)
