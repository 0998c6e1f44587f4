"""Addresses and networks in expressions."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.costs import Range
from moorage.cel.library import cidr, ip
from moorage.cel.library.cidr import parse_cidr
from moorage.cel.library.ip import AddressError, parse_address, parse_ip
from tests.cel.kubernetes import (
    answer,
    argument,
    assert_answers_as_recorded,
    assert_declared_as_recorded,
    error_of,
    estimate,
    value_of,
)

ADDRESSES = st.ip_addresses().filter(
    lambda address: not (address.version == 6 and address.ipv4_mapped)
)
NETWORKS = ADDRESSES.flatmap(
    lambda address: st.integers(0, address.max_prefixlen).map(
        lambda length: ipaddress.ip_interface(f"{address}/{length}")
    )
)


def test_functions_are_declared_as_kubernetes_declares_them() -> None:
    assert_declared_as_recorded(ip.library(), cidr.library())


def test_answers_are_the_recorded_ones() -> None:
    assert_answers_as_recorded({"ip"}, at_least=50)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unable to parse IP"),
        ("%eth0", "missing IPv6 address"),
        ("1.2.3", "IPv4 address too short"),
        ("1.2.3.4.5", "IPv4 address too long"),
        ("1.2.3.", 'IPv4 field must have at least one digit (at ".")'),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        ("1.2.3.4x", 'unexpected character (at "x")'),
        ("1.2.3.04", "IPv4 field has octet with leading zero"),
        ("1.2.3.999", "IPv4 field has value >255"),
        ("::1%", "zone must be a non-empty string"),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        (":1", 'each colon-separated field must have at least one digit (at ":1")'),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:2:3", "address string too short"),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
        ("1::2:", 'colon must be followed by more characters (at ":")'),
        ("1::g", 'each colon-separated field must have at least one digit (at "g")'),
        ("1:2g", 'unexpected character, want colon (at "g")'),
        (
            "1:2:1.2.3.4",
            'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")',
        ),
        (
            "1:2:3:4:5:6:7::1.2.3.4",
            'too many hex fields to fit an embedded IPv4 at the end of the address (at "1.2.3.4")',
        ),
        ("::1.2.3.4ä", 'unexpected character (at "ä")'),
    ],
)
def test_what_is_wrong_with_an_address(text: str, message: str) -> None:
    with pytest.raises(AddressError) as refusal:
        parse_address(text)
    assert str(refusal.value) == f'ParseAddr("{text}"): {message}'


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("ip('fe80::1%eth0')", 'IP address "fe80::1%eth0" with zone value is not allowed'),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        (
            "ip('a\\n')",
            (
                'IP Address "a\\n" parse error during conversion from string: '
                'ParseAddr("a\\n"): unable to parse IP'
            ),
        ),
        # What is wrong with the text is not told, only that it does not fit.
        ("cidr('10.0.0.0/8').containsIP('bad')", "no such overload"),
        ("dyn(ip('::1')) == dyn('::1')", "no such overload"),
    ],
)
def test_what_is_wrong_with_an_expression(expression: str, error: str) -> None:
    assert error_of(expression) == error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10.0.0.0", "no '/'"),
        ("10.0/8", 'ParseAddr("10.0"): IPv4 address too short'),
        ("fe80::%eth0/10", "IPv6 zones cannot be present in a prefix"),
        ("10.0.0.0/", 'bad bits after slash: ""'),
        ("10.0.0.0/08", 'bad bits after slash: "08"'),
        ("10.0.0.0/+8", 'bad bits after slash: "+8"'),
        ("10.0.0.0/٣", 'bad bits after slash: "٣"'),
        ("10.0.0.0/33", "prefix length out of range"),
        ("10.0.0.0/9223372036854775807", "prefix length out of range"),
        ("10.0.0.0/9223372036854775808", 'bad bits after slash: "9223372036854775808"'),
    ],
)
def test_what_is_wrong_with_a_network(text: str, message: str) -> None:
    wrong = "network address parse error during conversion from string: "
    found = f'netip.ParsePrefix("{text}"): {message}'
    assert error_of(f"cidr('{text}')") == wrong + wrong + found


def test_a_network_of_mapped_addresses_is_refused() -> None:
    assert error_of("cidr('::ffff:1.2.3.4/96')") == (
        "network address parse error during conversion from string: "
        'IPv4-mapped IPv6 address "::ffff:1.2.3.4/96" is not allowed'
    )


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("ip('10.0.0.1').isGlobalUnicast()", True),
        ("ip('255.255.255.255').isGlobalUnicast()", False),
        ("ip('::').isGlobalUnicast()", False),
        ("ip('239.0.0.1').isGlobalUnicast()", False),
        ("ip('169.254.1.1').isLinkLocalUnicast()", True),
        ("ip('fe80::1').isLinkLocalUnicast()", True),
        ("ip('224.0.0.251').isLinkLocalMulticast()", True),
        ("ip('224.0.1.1').isLinkLocalMulticast()", False),
        ("ip('ff12::1').isLinkLocalMulticast()", True),
        ("ip('127.255.255.255').isLoopback()", True),
        ("ip('::').isUnspecified()", True),
        ("ip('::1').family()", 6),
        ("ip.isCanonical('2001:DB8::1')", False),
        ("ip.isCanonical('127.0.0.1')", True),
        ("isIP('1.2.3.4/24')", False),
        ("isCIDR('::/0')", True),
        ("cidr('10.1.2.3/8').prefixLength()", 8),
        ("cidr('10.0.0.0/8').containsIP(ip('10.255.0.1'))", True),
        ("cidr('0.0.0.0/0').containsIP('::1')", False),
        ("cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))", True),
        ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')", False),
        ("cidr('10.0.0.1/8') == cidr('10.0.0.2/8')", False),
        ("cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')", True),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("0:0:0:0:0:0:0:0", "::"),
        ("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"),
        ("::1.2.3.4", "::102:304"),
    ],
)
def test_the_shortest_text_of_an_address(written: str, text: str) -> None:
    assert str(parse_ip(written)) == text


@given(ADDRESSES)
def test_texts_are_those_of_the_standard_library(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    parsed = parse_ip(address.exploded)
    assert str(parsed) == str(address)
    assert parse_ip(str(parsed)) == parsed


@given(NETWORKS, NETWORKS)
def test_containment_is_that_of_the_standard_library(
    first: ipaddress.IPv4Interface, second: ipaddress.IPv4Interface
) -> None:
    outer, inner = parse_cidr(str(first)), parse_cidr(str(second))
    assert str(outer.masked()) == str(first.network)
    assert outer.contains(inner.ip) == (second.ip in first.network)
    is_subnet = first.version == second.version and second.network.subnet_of(first.network)
    assert outer.contains_network(inner) == is_subnet


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("ip('192.168.0.1')", 2),
        ("ip.isCanonical('192.168.0.1')", 3),
        ("cidr('10.0.0.0/8').ip()", 2),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 3),
        ("cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))", 3),
        ("cidr('2001:db8::/128').containsCIDR('::/0')", 10),
        ("ip('::1') == ip('::1')", 3),
    ],
)
def test_costs(expression: str, cost: int) -> None:
    assert answer(expression).cost == cost


def test_containment_is_estimated_by_the_bytes_of_an_address() -> None:
    address, text = argument(1, 1, ip.IP_TYPE), argument(0, 64)
    assert estimate("containsIP", "cidr_contains_ip_ip", address) == Range(1, 4)
    assert estimate("containsIP", "cidr_contains_ip_string", text) == Range(1, 11)
    assert estimate("containsCIDR", "cidr_contains_cidr", address) == Range(3, 7)
    assert estimate("containsCIDR", "cidr_contains_cidr_string", text) == Range(3, 14)
