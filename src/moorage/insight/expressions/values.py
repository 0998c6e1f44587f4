"""Values of devices and literals of expressions: their types, units, and how they are written.

0 and "0", a version and a string, a list and its only element print alike. So messages name the
type where it matters, and a literal can be turned into the type that devices have.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from moorage.api.errors import QuantityError, VersionError
from moorage.api.quantity import Quantity
from moorage.api.semver import Version, parse_normalized, parse_version
from moorage.insight.expressions.syntax import shown
from moorage.insight.messages import most_frequent_first
from moorage.insight.messages import type_name as attribute_type
from moorage.kit.similar_names import similar

VALUES_SHOWN_MAX: Final = 3
TRUE_TEXTS: Final = ("true", "yes", "on", "1")
FALSE_TEXTS: Final = ("false", "no", "off", "0")
_AMOUNT: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_ALNUM: Final = re.compile(r"[A-Za-z0-9]+")
_WORDS: Final = re.compile(r"[^\s,;/_-]+")
OVER: Final = 3
DIGITS_MAX: Final = 6  # of a word that names a model: H100, 80GB
_PREFIXES: Final = "kmgtpe"
_UNITS: Final = ("", "k", "Ki", "M", "Mi", "G", "Gi", "T", "Ti", "P", "Pi")


# --- types ----------------------------------------------------------------------------------


def type_name(value: Any) -> str:
    """Return the type of a value as expressions call it: int, string, list, map."""
    match value:
        case float():
            return "double"
        case list() | tuple():
            return "list"
        case dict():
            return "map"
    return attribute_type(value)


def with_article(name: str) -> str:
    """Return a type with its article."""
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def literal(value: Any) -> str:
    """Return a value as an expression writes it."""
    match value:
        case Version():
            return f'semver("{value}")'
        case Quantity():
            return f'quantity("{value}")'
    return shown(value, length_max=None)


def compared(subject: str, relation: str, value: Any) -> str:
    """Return the comparison of a subject with a value of its own type."""
    if isinstance(value, Version | Quantity) and relation not in ("==", "!="):
        return f"{subject}.compareTo({literal(value)}) {relation} 0"
    return f"{subject} {relation} {literal(value)}"


def tally_of(values: Iterable[tuple[Any, int]]) -> Counter[str]:
    """Return how many devices have each value, as text."""
    tally: Counter[str] = Counter()
    for value, devices in values:
        tally[shown(value)] += devices
    return tally


def tallied(tally: Counter[str], *, shown_max: int = VALUES_SHOWN_MAX) -> str:
    """Return values with their numbers of devices, the most frequent first."""
    common = most_frequent_first(tally)[:shown_max]
    texts = [f"{value} ({number:,})" for value, number in common]
    if more := len(tally) - len(common):
        texts.append(f"{more:,} other values" if more > 1 else "1 other value")
    return ", ".join(texts)


# --- literals in another type ---------------------------------------------------------------


def converted(asked: Any, sample: Any) -> Any:
    """Return a literal in the type of a sample; None if it has no value there."""
    text = shown(asked) if isinstance(asked, bool | float) else str(asked)
    match sample:
        case bool():
            lower = text.lower()
            if lower in TRUE_TEXTS or lower in FALSE_TEXTS:
                return lower in TRUE_TEXTS
        case int():
            if isinstance(asked, float) and asked.is_integer() and abs(asked) < 2**53:
                return int(asked)
            return int(text) if _WHOLE.fullmatch(text) else None
        case str():
            return text
        case Version():
            return version_of(text)
        case Quantity():
            return quantity_of(text)
    return None


def version_of(text: str) -> Version | None:
    """Return the version that a text means: 12.8 and v12.8 are 12.8.0."""
    try:
        return parse_normalized(text.strip().removeprefix("V"))
    except VersionError:
        return None


def is_version(text: str) -> bool:
    """Whether semver() takes a text."""
    try:
        parse_version(text)
    except VersionError:
        return False
    return True


def quantity_of(text: str) -> Quantity | None:
    """Return the quantity that a text means: 80GB and 80 GiB are 80G and 80Gi."""
    found = _AMOUNT.fullmatch(text)
    try:
        return Quantity.parse(text) if found is None else _parsed(*found.groups())
    except QuantityError:
        return None


def _parsed(number: str, unit: str) -> Quantity:
    try:
        return Quantity.parse(f"{number}{unit}")
    except QuantityError:
        lower = unit.lower().removesuffix("b").removesuffix("yte")
        prefix, binary = lower[:1], lower[1:] == "i"
        if prefix and prefix in _PREFIXES and lower[1:] in ("", "i"):
            unit = prefix.upper() if binary or prefix != "k" else prefix
            return Quantity.parse(f"{number}{unit}{'i' if binary else ''}")
        raise


def is_quantity(text: str) -> bool:
    """Whether quantity() takes a text."""
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def in_other_units(text: str) -> Iterator[tuple[str, Quantity]]:
    """Yield the same number in other units, the likeliest mistake first: Gi and G, then others."""
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return
    number, unit = found.groups()
    twin = unit.removesuffix("i") if unit.endswith("i") else f"{unit}i"
    alike = [each for each in _UNITS if each.endswith("i") is unit.endswith("i")]
    for other in dict.fromkeys((twin, *alike, *_UNITS)):
        if other != unit and other in _UNITS:
            made = f"{number}{other}"
            try:
                yield made, Quantity.parse(made)
            except QuantityError:
                continue


def in_likely_unit(number: str, values: Iterable[Quantity]) -> str:
    """Return a bare number with the unit in which it is near to what devices have.

    Less than they have is likelier than more.
    """
    best = max(values).approximate_float
    if best <= 0:
        return number

    def distance(unit: str) -> float:
        amount = Quantity.parse(f"{number}{unit}").approximate_float
        return math.log(best / amount) if amount <= best else OVER * math.log(amount / best)

    return number + (min(("", "Ki", "Mi", "Gi", "Ti"), key=distance) if int(number) else "")


# --- texts that look alike ------------------------------------------------------------------


def similar_texts(asked: str, values: Iterable[str]) -> list[str]:
    """Return the values that look like the asked one or have all its words, the nearest first.

    One with another number in a word is another model: A100 is not H100.
    """
    known = list(dict.fromkeys(values))
    found = similar(asked, known)
    words = asked.lower().split()
    if len(asked) > 1:
        having = [each for each in known if words and all(word in each.lower() for word in words)]
        found += [each for each in having if each not in found and each != asked]
    models = [word.lower() for word in _ALNUM.findall(asked) if _is_model(word)]
    return [each for each in found if all(model in each.lower() for model in models)]


def _is_model(word: str) -> bool:
    return len(word) <= DIGITS_MAX and any(each.isdigit() for each in word)


def similar_part(asked: str, values: Iterable[str]) -> str | None:
    """Return a part of a value that looks like the asked one: h100 is H100 in "NVIDIA H100"."""
    known = list(dict.fromkeys(values))
    for value in known:
        start = value.lower().find(asked.lower())
        if start >= 0 and asked:
            return value[start : start + len(asked)]
    words = [word for value in known for word in (value, *_WORDS.findall(value))]
    return next(iter(similar_texts(asked, words)), None)
