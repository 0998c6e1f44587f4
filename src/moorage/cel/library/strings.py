"""Kubernetes' functions of strings: regular expressions and named formats.

    'abc 123'.find('[0-9]+')
    format.dns1123Label().validate('my-label').hasValue()

A format checks a text and returns nothing or the errors. The formats have the names of two
generations: Kubernetes' own object names, and the formats of OpenAPI.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from moorage.api import names
from moorage.cel.lang.costs import (
    MATCH,
    PATTERN_FACTOR,
    TRAVERSAL_FACTOR,
    Argument,
    Arguments,
    CallEstimate,
    Range,
    estimate_match,
    scale,
    traversal,
)
from moorage.cel.lang.environment import Function, Library, functions_of, members_of
from moorage.cel.lang.equality import size_of
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.regex import Regex, compile_regex
from moorage.cel.lang.types import INT, STRING, list_of, optional_of, struct
from moorage.cel.lang.values import NONE, Optional
from moorage.cel.library.urls import URLError, parse_request_uri


def regex_library() -> Library:
    """Return the library `kubernetes.regex`; `matches` belongs to the language."""
    texts, strings = (STRING, STRING), list_of(STRING)
    costs = (MATCH[0], _estimate_find)
    return Library(
        "kubernetes.regex",
        functions=(
            members_of("find", ("string_find_string", texts, STRING, _find), costs=costs),
            members_of(
                "findAll",
                ("string_find_all_string", texts, strings, _find_all),
                ("string_find_all_string_int", (*texts, INT), strings, _find_all),
                costs=costs,
            ),
        ),
    )


def _estimate_find(target: Argument | None, args: Arguments) -> CallEstimate:
    """Return the estimate of a match; at worst every character is a find of its own."""
    assert target is not None
    return CallEstimate(estimate_match(target, args).cost, Range(0, target.size.high))


def _find(text: str, pattern: str) -> str:
    return _compiled(pattern).find(text) or ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _compiled(pattern).find_all(text, limit=limit)


def _compiled(pattern: str) -> Regex:
    try:
        return compile_regex(pattern)
    except EvalError as error:
        raise EvalError(f"Illegal regex: {error}") from None


# --- named formats --------------------------------------------------------------------------------


FORMAT_TYPE: Final = struct("kubernetes.NamedFormat")
# The length that estimates assume for the regular expression of any format.
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
FormatCheck = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True, eq=False)
class NamedFormat:
    """A format, known by its name.

    pattern_size is the length of the regular expression that its use is charged for.
    """

    name: str
    check: FormatCheck
    pattern_size: int

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, NamedFormat) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)


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


def _as_prefix(check: FormatCheck) -> FormatCheck:
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


def _matching(is_valid: Callable[[str], object], message: str) -> FormatCheck:
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


def format_library() -> Library:
    """Return the library `kubernetes.format`."""
    result = optional_of(list_of(STRING))
    validate = ("format-validate", (FORMAT_TYPE, STRING), result, _validate)
    named = ("format-named", (STRING,), optional_of(FORMAT_TYPE), _named_format)
    return Library(
        "kubernetes.format",
        functions=(
            members_of("validate", validate, costs=(_validate_cost, _estimate_validate)),
            functions_of("format.named", named),
            *(_constant(f"format.{name}", value) for name, value in FORMATS.items()),
        ),
        python_types={NamedFormat: FORMAT_TYPE},
    )


def _constant(name: str, value: NamedFormat) -> Function:
    return functions_of(name, (name, (), FORMAT_TYPE, lambda: value))


def _named_format(name: str) -> Optional:
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


def _estimate_validate(_target: Argument | None, args: Arguments) -> CallEstimate:
    return CallEstimate(scale(traversal(args[0].size), PATTERN_SIZE_ESTIMATED * PATTERN_FACTOR))
