"""Kubernetes' functions of networks: `cidr('10.0.0.0/8').containsIP('10.1.2.3')`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mooring.cel.lang.declarations import (
    CallEstimate,
    CostEstimate,
    EstimatedArgument,
    Function,
    Library,
    Overload,
    Range,
    RuntimeCost,
)
from mooring.cel.lang.equality import size_of
from mooring.cel.lang.library.costs import TRAVERSAL_FACTOR, traversal_cost
from mooring.cel.lang.library.gotext import quoted
from mooring.cel.lang.ranges import add, exactly, scale
from mooring.cel.lang.types import BOOL, INT, STRING, Type, opaque
from mooring.cel.lang.values import INT_MAX, EvalError, no_such_overload
from mooring.cel.library.costs import estimates_first, traverses_first
from mooring.cel.library.ip import (
    IP,
    IP_TYPE,
    AddressError,
    mapped_v4_refused,
    parse_address,
    parse_ip,
)

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
        """The size that costs go by: how many bytes the length touches."""
        return math.ceil(self.length / 8)

    def __str__(self) -> str:
        return f"{self.ip}/{self.length}"


# --- reading --------------------------------------------------------------------------------------


def parse_cidr(text: str) -> CIDR:
    """Return the network that CEL accepts in a text, or raise EvalError with Kubernetes' text."""
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
    """A text that is no network, with Go's text."""

    def __init__(self, text: str, message: str) -> None:
        super().__init__(f"netip.ParsePrefix({quoted(text)}): {message}")


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
        raise _PrefixError(text, f"bad bits after slash: {quoted(length)}")
    if int(length) > address.bits:
        raise _PrefixError(text, "prefix length out of range")
    return CIDR(address, int(length))


# --- asking ---------------------------------------------------------------------------------------


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
        # Kubernetes loses what is wrong with the text here, unlike in containsCIDR.
        raise no_such_overload() from None
    return network.contains(address)


def _contains_cidr_text(network: CIDR, text: str) -> bool:
    return network.contains_network(parse_cidr(text))


def _ip_of(network: CIDR) -> IP:
    return network.ip


def _length_of(network: CIDR) -> int:
    return network.length


# --- costs ----------------------------------------------------------------------------------------


def _containment_cost(*, of_network: bool, of_text: bool) -> RuntimeCost:
    """Return the cost of comparing bytes: of two networks also their masks, of a text also it."""

    def cost(args: tuple[Any, ...], _result: Any) -> int:
        total = math.ceil(2 * size_of(args[0]) * TRAVERSAL_FACTOR)
        if of_network:
            total += traversal_cost(args[0]) + 1
        if of_text:
            total += traversal_cost(args[1])
        return total

    return cost


def _containment_estimate(*, of_network: bool, of_text: bool) -> CostEstimate:
    def estimate(
        _target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
    ) -> CallEstimate | None:
        total = scale(add(_ADDRESS_BYTES, _ADDRESS_BYTES), TRAVERSAL_FACTOR)
        if of_network:
            total = add(total, scale(_ADDRESS_BYTES, TRAVERSAL_FACTOR), exactly(1))
        if of_text:
            total = add(total, scale(args[0].size, TRAVERSAL_FACTOR))
        return CallEstimate(total)

    return estimate


# --- declarations ---------------------------------------------------------------------------------


def library() -> Library:
    """Return the library `kubernetes.net.cidr`."""
    return Library(
        "kubernetes.net.cidr",
        functions=(*_readers(), *_accessors(), *_containments()),
        types=(CIDR_TYPE,),
        python_types={CIDR: CIDR_TYPE, IP: IP_TYPE},
    )


def _readers() -> tuple[Function, ...]:
    return (
        _reader("cidr", "string_to_cidr", CIDR_TYPE, parse_cidr),
        _reader("isCIDR", "is_cidr", BOOL, _is_cidr),
        Function("string", (Overload("cidr_to_string", (CIDR_TYPE,), STRING, str),)),
    )


def _accessors() -> tuple[Function, ...]:
    return (
        _accessor("ip", "cidr_ip", IP_TYPE, _ip_of),
        _accessor("prefixLength", "cidr_prefix_length", INT, _length_of),
        _accessor("masked", "cidr_masked", CIDR_TYPE, CIDR.masked),
    )


def _containments() -> tuple[Function, ...]:
    # Values before texts: a call of which the checker cannot tell the kind costs as the first.
    return (
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
    )


def _containment(id_: str, other: Type, evaluate: Callable[..., Any]) -> Overload:
    of_network, of_text = id_.startswith("cidr_contains_cidr"), other is STRING
    return Overload(
        id_,
        (CIDR_TYPE, other),
        BOOL,
        evaluate,
        is_member=True,
        runtime_cost=_containment_cost(of_network=of_network, of_text=of_text),
        estimate=_containment_estimate(of_network=of_network, of_text=of_text),
    )


def _reader(name: str, id_: str, result: Type, evaluate: Callable[..., Any]) -> Function:
    overload = Overload(
        id_,
        (STRING,),
        result,
        evaluate,
        runtime_cost=traverses_first(),
        estimate=estimates_first(),
    )
    return Function(name, (overload,))


def _accessor(name: str, id_: str, result: Type, evaluate: Callable[..., Any]) -> Function:
    return Function(name, (Overload(id_, (CIDR_TYPE,), result, evaluate, is_member=True),))
