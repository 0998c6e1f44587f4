"""Kubernetes' named formats: `format.dns1123Label().validate('my-label').hasValue()`.

A format checks a text and answers with nothing or with what is wrong. The names of its two
generations are kept: those of Kubernetes' own names, and those of the formats of OpenAPI.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mooring.api import names
from mooring.cel.lang.declarations import (
    CallEstimate,
    EstimatedArgument,
    Function,
    Library,
    Overload,
)
from mooring.cel.lang.equality import size_of
from mooring.cel.lang.library.costs import PATTERN_FACTOR, TRAVERSAL_FACTOR
from mooring.cel.lang.ranges import scale
from mooring.cel.lang.types import STRING, list_of, optional_of, struct
from mooring.cel.lang.values import NONE, Optional
from mooring.cel.library.neturl import URLError, parse_request_uri

FORMAT_TYPE: Final = struct("kubernetes.NamedFormat")
# What estimates take for the length of a format's regular expression, whatever it is.
PATTERN_SIZE_ESTIMATED: Final = 128

_UUID_PATTERN: Final = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_TIME_PATTERN: Final = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"
_is_uuid = re.compile("(?:[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})", re.I | re.A).fullmatch
_is_time = re.compile(
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:.[0-9]+)?(?:[zZ]|[+-][0-9]{2}:[0-9]{2})"
).fullmatch
_is_base64 = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
).fullmatch
_match_date = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})").fullmatch
_is_dns1035_label = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?").fullmatch

Check = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True, eq=False)
class NamedFormat:
    """A format, known by its name.

    pattern_size is the length of the regular expression that its use is charged for.
    """

    name: str
    check: Check
    pattern_size: int

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, NamedFormat) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)


# --- checks ---------------------------------------------------------------------------------------


def _dns1035_label(text: str) -> list[str]:
    messages = []
    if names.byte_length(text) > names.LABEL_MAX:
        messages.append(f"must be no more than {names.LABEL_MAX} characters")
    if not _is_dns1035_label(text):
        messages.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
            "with an alphabetic character, and end with an alphanumeric character "
            "(e.g. 'my-name',  or 'abc-123', regex used for validation is "
            "'[a-z]([-a-z0-9]*[a-z0-9])?')"
        )
    return messages


def _as_prefix(check: Check) -> Check:
    """Return a check for the first part of a name, which may end with a dash."""
    return lambda text: check(_without_dash(text))


def _without_dash(text: str) -> str:
    """Return a text of which a last dash, with the byte before it, is an `a` instead.

    Half a character is as wrong as a whole one, and `!` is wrong and one byte long.
    """
    data = text.encode("utf-8", "surrogateescape")
    if len(data) < 2 or not data.endswith(b"-"):
        return text
    return "".join(chr(byte) if byte < 0x80 else "!" for byte in data[:-2]) + "a"


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except URLError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    """date = year "-" month "-" day, a day that exists; the year 0 is a leap year"""
    found = _match_date(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    # Leap years repeat after 400 years, and Python's calendar starts with year 1.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year + 400, month)[1]


def _is_datetime(text: str) -> bool:
    """datetime = date "T" time [ "T" anything ]"""
    date, *rest = re.split("[tT]", text)
    return bool(rest) and _is_date(date) and _is_time(rest[0]) is not None


def _matching(is_valid: Callable[[str], object], message: str) -> Check:
    return lambda text: [] if is_valid(text) else [message]


FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", names.dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.label_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _as_prefix(names.dns1123_label), 30),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", _as_prefix(names.dns1123_subdomain), 60
    ),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _as_prefix(_dns1035_label), 30),
    "labelValue": NamedFormat("LabelValue", names.label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat(
        "uuid", _matching(_is_uuid, "does not match the UUID format"), len(_UUID_PATTERN)
    ),
    "byte": NamedFormat("byte", _matching(_is_base64, "invalid base64"), 84),
    "date": NamedFormat("date", _matching(_is_date, "invalid date"), len(_TIME_PATTERN)),
    "datetime": NamedFormat(
        "datetime", _matching(_is_datetime, "invalid datetime"), len(_TIME_PATTERN)
    ),
}


# --- declarations ---------------------------------------------------------------------------------


def library() -> Library:
    """Return the library `kubernetes.format`."""
    validate = Overload(
        "format-validate",
        (FORMAT_TYPE, STRING),
        optional_of(list_of(STRING)),
        _validate,
        is_member=True,
        runtime_cost=_validate_cost,
        estimate=_validate_estimate,
    )
    named = Overload("format-named", (STRING,), optional_of(FORMAT_TYPE), _named)
    return Library(
        "kubernetes.format",
        functions=(
            Function("validate", (validate,)),
            Function("format.named", (named,)),
            *(_constant(f"format.{name}", value) for name, value in FORMATS.items()),
        ),
        python_types={NamedFormat: FORMAT_TYPE},
    )


def _constant(name: str, value: NamedFormat) -> Function:
    return Function(name, (Overload(name, (), FORMAT_TYPE, lambda: value),))


def _named(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else NONE


def _validate(named_format: NamedFormat, text: str) -> Optional:
    messages = named_format.check(text)
    return Optional(messages) if messages else NONE


def _validate_cost(args: tuple[Any, ...], _result: Any) -> int:
    named_format, text = args
    if not isinstance(named_format, NamedFormat):
        return 1
    traversal = math.ceil((1 + size_of(text)) * TRAVERSAL_FACTOR)
    return traversal * math.ceil(named_format.pattern_size * PATTERN_FACTOR)


def _validate_estimate(
    _target: EstimatedArgument | None, args: tuple[EstimatedArgument, ...]
) -> CallEstimate | None:
    traversal = scale(args[0].size, TRAVERSAL_FACTOR)
    return CallEstimate(scale(traversal, PATTERN_SIZE_ESTIMATED * PATTERN_FACTOR))
