"""Formats of strings that schemas name, as k8s.io/kube-openapi's strfmt validates them.

Other formats have no effect, as in Kubernetes.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
import unicodedata
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from ipaddress import IPv6Address, ip_network
from typing import Final

from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.time import Duration
from moorage.cel.library.urls import URLError, parse_request_uri

Check = Callable[[str], bool]

NUMBER_FORMATS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}

_UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_ANY, _VARIANT = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"
_LABEL_BYTES_MAX: Final = 63
_HOSTNAME_BYTES_MAX: Final = 255
_CREDIT_CARD = (
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|"
    r"3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
)
_RGB_PART = r"(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_RGB = rf"rgb\(\s*{_RGB_PART}\s*,\s*{_RGB_PART}\s*,\s*{_RGB_PART}\s*\)"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_DURATION_PART = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
# Spellings of units; the last of a group also stands for all words that begin with it.
_UNITS: Final = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
_SHORT_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _matching(pattern: str, *, any_case: bool = False) -> Check:
    compiled = re.compile(pattern, re.ASCII | (re.IGNORECASE if any_case else 0))
    return lambda text: compiled.fullmatch(text) is not None


def _is_uri(text: str) -> bool:
    try:
        parse_request_uri(text)
    except (URLError, EvalError):
        return False
    return True


def _is_email(text: str) -> bool:
    _, address = parseaddr(text)
    local, _, domain = address.rpartition("@")
    return bool(local and domain) and not re.search(r"[\s,;<>]", address)


def _is_hostname(text: str) -> bool:
    """Whether labels of letters, digits and symbols are joined by dots; the last has letters."""
    *labels, last = text.split(".")
    if len(text.encode()) > _HOSTNAME_BYTES_MAX:
        return False
    if any(len(label.encode()) > _LABEL_BYTES_MAX for label in (*labels, last)):
        return False
    if not labels:  # a hyphen may be the second character then, and no other
        return bool(last) and _are_label_characters(last[0] + last[1:].removeprefix("-"))
    return (
        len(last) > 1
        and all(unicodedata.category(character)[0] == "L" for character in last)
        and all(map(_is_label, labels))
    )


def _is_label(text: str) -> bool:
    return (
        bool(text)
        and "-" not in (text[0], text[-1])
        and _are_label_characters(text.replace("-", ""))
    )


def _are_label_characters(text: str) -> bool:
    return all(
        character in string.digits or unicodedata.category(character)[0] in "LS"
        for character in text
    )


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    if ":" in text:  # with an IPv6 address before it
        return _is_ipv6(text) and "." in text
    return len(parts) == 4 and all(
        part.isascii() and part.isdigit() and int(part) <= 255 for part in parts
    )


def _is_ipv6(text: str) -> bool:
    try:
        return ":" in text and "%" not in text and bool(IPv6Address(text).exploded)
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isdigit() or not bits.isascii():
        return False
    try:
        if ":" not in address:  # Go ignores leading zeros here.
            address = ".".join(str(int(part)) for part in address.split("."))
        ip_network(f"{address}/{int(bits)}", strict=False)
    except ValueError:
        return False
    return True


_MAC = re.compile(
    r"(?:[0-9A-Fa-f]{2}([:-]))(?:[0-9A-Fa-f]{2}\1)*[0-9A-Fa-f]{2}"
    r"|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4})+"
)


def _is_mac(text: str) -> bool:
    digits = re.sub("[:.-]", "", text)
    return _MAC.fullmatch(text) is not None and len(digits) in (12, 16, 40)


def _digits(text: str) -> str:
    return re.sub(r"[\s-]+", "", text)


def _is_isbn10(text: str) -> bool:
    found = _digits(text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", found):
        return False
    return sum((i + 1) * (10 if c == "X" else int(c)) for i, c in enumerate(found)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    found = _digits(text)
    if not re.fullmatch("[0-9]{13}", found):
        return False
    total = sum((1, 3)[i % 2] * int(c) for i, c in enumerate(found[:12]))
    return int(found[12]) == (10 - total % 10) % 10


def _is_credit_card(text: str) -> bool:
    found = re.sub("[^0-9]+", "", text)
    if not re.fullmatch(_CREDIT_CARD, found):
        return False
    doubled = (int(c) * (1 + i % 2) for i, c in enumerate(reversed(found)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _is_base64(text: str) -> bool:
    try:
        return bool(text) and bool(base64.b64decode(text, validate=True)) and len(text) % 4 == 0
    except (binascii.Error, ValueError):
        return False


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        return date.fromisoformat(text) is not None
    except ValueError:
        return text.startswith("0000")  # Go has a year 0.


def _is_datetime(text: str) -> bool:
    day, _, time = text.lower().partition("t")
    found = _TIME.fullmatch(time.partition("t")[0])
    if not _is_date(day) or found is None:
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    try:
        Duration.parse(text)
    except EvalError:
        pass
    else:
        return True
    parts = _DURATION_PART.findall(text)
    if any(int(number[:30]) >= 2**63 for number, _ in parts):
        return False
    return any(_is_unit(unit) for _, unit in parts)


def _is_unit(word: str) -> bool:
    return any(
        word.startswith(group[-1]) or word.lower() in map(str.lower, group) for group in _UNITS
    )


_FORMATS: dict[str, Check] = {
    "bsonobjectid": _matching("[0-9a-f]{24}", any_case=True),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _matching(_UUID % (_ANY, _ANY), any_case=True),
    "uuid3": _matching(_UUID % ("3[0-9a-f]{3}", _ANY), any_case=True),
    "uuid4": _matching(_UUID % ("4[0-9a-f]{3}", _VARIANT), any_case=True),
    "uuid5": _matching(_UUID % ("5[0-9a-f]{3}", _VARIANT), any_case=True),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matching("#?([0-9a-f]{3}|[0-9a-f]{6})", any_case=True),
    "rgbcolor": _matching(_RGB),
    "byte": _is_base64,
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_datetime,
    "k8sshortname": lambda text: len(text) <= 63 and bool(re.fullmatch(_SHORT_NAME, text)),
    "k8slongname": lambda text: (
        len(text) <= 253 and bool(re.fullmatch(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*", text))
    ),
}
STRING_FORMATS: Final = tuple(_FORMATS)


def format_check(name: str) -> Check | None:
    """Return the check of a string format, or None for formats without effect."""
    return _FORMATS.get(name.replace("-", ""))
