"""YAML scalars: the value, or the key of a mapping, that a scalar event means; with tags.

A schema is a function from the text of a plain (unquoted) scalar to its value. There are two:

CORE        the YAML 1.2 core schema: `on`, `yes`, `1_000`, `12:30:45` and dates are strings,
            `0o17` is 15. In one thing it follows Kubernetes: `017` is 15 and not 17, because
            file modes are written like this.
KUBERNETES  what Kubernetes 1.37 does (go.yaml.in/yaml/v2, mostly YAML 1.1): `on`, `yes` and `y`
            are true, `017`, `0o17` and `0b1111` are 15, `1_000` is 1000, and integers beyond 64
            bits are floats.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from yaml.events import ScalarEvent

# --- numbers, as Kubernetes sees them in JSON -----------------------------------------------------

# Kubernetes converts YAML to JSON, and parses quantities from the JSON text of a number. So a
# number that is not an integer keeps that text.

DIGITS_MAX = 400
"""Longer than any float64 in decimal, far below where Python's int() becomes slow."""


class ScalarRefusedError(ValueError):
    """A scalar has no meaning in JSON; the message is the fact, its position is added later."""


def excerpt(text: str) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= 40 else f"{text[:37]}..."


class NumberText(float):
    """A JSON number that is not an integer, with the text it has in JSON."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> NumberText:
        """Parse a JSON number."""
        if len(text) > DIGITS_MAX:
            raise too_long(text)
        number = super().__new__(cls, text)
        if not math.isfinite(number):
            raise out_of_range(text)
        number.text = text
        return number

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]  # copies keep the text
        return (self.text,)

    def __repr__(self) -> str:
        return f"NumberText({self.text!r})"


def too_long(text: str) -> ScalarRefusedError:
    """Return the error for a number with too many digits."""
    return ScalarRefusedError(
        f"number {excerpt(text)} has {len(text)} characters, at most {DIGITS_MAX} are read"
    )


def out_of_range(text: str) -> ScalarRefusedError:
    """Return the error for a number that no float64 can hold."""
    return ScalarRefusedError(f"number {excerpt(text)} is out of range")


def from_yaml_float(value: float) -> int | NumberText:
    """Return a YAML float as Kubernetes sees it in JSON, where 1e3 and 1.0 are integers."""
    if not math.isfinite(value):
        raise ScalarRefusedError(f"{float_key(value)} is not a JSON number")
    text = json_text(value)
    return NumberText(text) if "." in text or "e" in text else int(text)


def json_text(value: float) -> str:
    """Return a finite float as Go's JSON encoder writes it: 1000, 0.1, 1e+21, 1e-7."""
    magnitude = abs(value)
    if magnitude and not 1e-6 <= magnitude < 1e21:
        return repr(value).replace("e-0", "e-")
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def float_key(value: float) -> str:
    """Return a float as sigs.k8s.io/yaml writes a mapping key: float32 digits, %g."""
    if math.isnan(value):
        return ".nan"
    single = _to_single(value)
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    for precision in range(9):
        text = f"{single:.{precision}e}"
        if _to_single(float(text)) == single:
            break
    exponent = int(text.partition("e")[2])
    return text if exponent < -4 or exponent >= 6 else format(Decimal(text), "f")


def _to_single(value: float) -> float:
    try:
        single: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return single


# --- tags and schemas -----------------------------------------------------------------------------

_STANDARD = "tag:yaml.org,2002:"
_TEXT_TAGS = {"!", f"{_STANDARD}str", f"{_STANDARD}timestamp"}
_MERGE_TAG = f"{_STANDARD}merge"
_BINARY_TAG = f"{_STANDARD}binary"

Scalar = str | int | NumberText | bool | None


def is_merge(event: ScalarEvent) -> bool:
    """Return whether a key is `<<`, which merges other mappings into its own."""
    return event.value == "<<" and (
        event.tag == _MERGE_TAG or (event.tag is None and event.implicit[0])
    )


def value_of(event: ScalarEvent, schema: Schema) -> Scalar:
    """Return the JSON value of a scalar."""
    plain = _resolve(event, schema)
    return from_yaml_float(plain) if isinstance(plain, float) else plain


def key_of(event: ScalarEvent, schema: Schema) -> str:
    """Return the JSON key of a scalar, as sigs.k8s.io/yaml writes those that are not strings."""
    plain = _resolve(event, schema)
    if isinstance(plain, str):
        return plain
    if plain is None:
        raise ScalarRefusedError("null cannot be the key of a mapping")
    if isinstance(plain, bool):
        return "true" if plain else "false"
    return float_key(plain) if isinstance(plain, float) else str(plain)


def short_tag(tag: str) -> str:
    """Return a tag as people write it: `!!int`, `!mine`."""
    if tag.startswith(_STANDARD):
        return excerpt(f"!!{tag.removeprefix(_STANDARD)}")
    return excerpt(tag)


def check_collection_tag(tag: str | None, name: str) -> None:
    """Reject a tag that makes a mapping ("map") or a list ("seq") something else."""
    if tag is not None and tag not in ("!", f"{_STANDARD}{name}"):
        raise ScalarRefusedError(f"tag {short_tag(tag)} is not supported on a !!{name}")


def _resolve(event: ScalarEvent, schema: Schema) -> Plain:
    if event.tag is not None:
        return _tagged(event.tag, event.value, schema)
    return schema(event.value) if event.implicit[0] else event.value


def _tagged(tag: str, text: str, schema: Schema) -> Plain:
    if tag in _TEXT_TAGS:
        return text
    name = short_tag(tag)
    if tag == _BINARY_TAG:
        raise ScalarRefusedError(f"tag {name} is not supported: write the base64 text without it")
    if name not in ("!!bool", "!!float", "!!int", "!!null"):
        raise ScalarRefusedError(f"tag {name} is not supported")
    plain = schema(text)
    found = _kind(plain)
    if found == name:
        return plain
    if isinstance(plain, int) and (found, name) == ("!!int", "!!float"):
        return float(plain)
    raise ScalarRefusedError(f"cannot decode {found} `{excerpt(text)}` as a {name}")


def _kind(plain: Plain) -> str:
    match plain:
        case None:
            return "!!null"
        case bool():
            return "!!bool"
        case int():
            return "!!int"
        case float():
            return "!!float"
    return "!!str"


# --- schemas --------------------------------------------------------------------------------------

Plain = str | int | float | bool | None
Schema = Callable[[str], Plain]

_CORE_WORDS: Mapping[str, Plain] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
}
_KUBERNETES_WORDS: Mapping[str, Plain] = {
    **_CORE_WORDS,
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "off", "Off", "OFF"], False),
}

# Most scalars are names; their first character shows that they are strings.
_CORE_FIRST = frozenset("0123456789+-.~nNtTfF")
_NUMBER_FIRST = frozenset("0123456789+-.")

_DECIMAL = re.compile(r"[-+]?[0-9]++").fullmatch
_PREFIXED = re.compile(r"0o[0-7]++|0x[0-9a-fA-F]++").fullmatch
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?").fullmatch
_GO_OCTAL = re.compile(r"[-+]?0[0-7]++").fullmatch
_GO_INTEGER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]++|0[oO][0-7]++|0[bB][01]++|0|[1-9][0-9]*+)"
).fullmatch

_INT64_MIN, _INT64_MAX, _UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1


def _core(text: str) -> Plain:
    """Return the value of a plain scalar in the YAML 1.2 core schema."""
    if text and text[0] not in _CORE_FIRST:
        return text
    if text in _CORE_WORDS:
        return _CORE_WORDS[text]
    if _FLOAT(text):
        return _core_number(text)
    if _PREFIXED(text):
        return _integer(text, 0)
    return text


def _core_number(text: str) -> int | float:
    if _DECIMAL(text):
        return _integer(text, 8 if _GO_OCTAL(text) else 10)
    if len(text) > DIGITS_MAX:
        raise too_long(text)
    number = float(text)
    if math.isinf(number):
        raise out_of_range(text)
    return number


def _integer(text: str, base: int) -> int:
    if len(text) > DIGITS_MAX:
        raise too_long(text)
    return int(text, base)


def _kubernetes(text: str) -> Plain:
    """Return the value of a plain scalar as Kubernetes 1.37 reads it."""
    if text in _KUBERNETES_WORDS:
        return _KUBERNETES_WORDS[text]
    if text[0] not in _NUMBER_FIRST:
        return text
    # Go drops the underscores unless the text begins with the point.
    plain = text if text[0] == "." else text.replace("_", "")
    integer = _go_integer(plain)
    if integer is not None:
        return integer
    if _FLOAT(plain):
        number = float(plain)
        return text if math.isinf(number) else number
    return text


def _go_integer(plain: str) -> int | None:
    """Return the value of a Go integer literal if an int64 or uint64 holds it."""
    if len(plain) > DIGITS_MAX:
        return None
    if _GO_OCTAL(plain):
        value = int(plain, 8)
    elif _GO_INTEGER(plain):
        value = int(plain, 0)
    else:
        return None
    # Go parses unsigned integers without a sign.
    highest = _INT64_MAX if plain[0] in "+-" else _UINT64_MAX
    return value if _INT64_MIN <= value <= highest else None


CORE: Final[Schema] = _core
KUBERNETES: Final[Schema] = _kubernetes
