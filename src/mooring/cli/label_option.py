"""Label selectors as kubectl's -l has them.

selector    = requirement { "," requirement }
requirement = key | "!" key | key ( "=" | "==" | "!=" ) value
            | key ( "in" | "notin" ) "(" values ")"
values      = value { "," value }
"""

from __future__ import annotations

import re

from mooring.api.labels import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NOT_IN,
    Selector,
    SelectorFault,
    read_selector,
)
from mooring.api.meta import LabelSelector, LabelSelectorRequirement

TEXT_MAX = 4096

_SEPARATORS = re.compile(r",(?![^(]*\))")
_EQUALITY = re.compile(r"([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)")
_SET = re.compile(r"([^\s=!,()]+)\s+(in|notin)\s*\(([^()]*)\)")
_EXISTENCE = re.compile(r"(!?)\s*([^\s=!,()]+)")


def read_labels(text: str) -> Selector:
    """Return the selector that a text describes, or raise ValueError."""
    if len(text) > TEXT_MAX:
        raise ValueError(f"longer than {TEXT_MAX:,} characters")
    if not text.strip():
        return Selector()
    parts = [part.strip() for part in _SEPARATORS.split(text)]
    selector = LabelSelector(match_expressions=tuple(map(_requirement, parts)))
    found = read_selector(selector)
    if isinstance(found, SelectorFault):
        raise ValueError(found.text)
    return found


def _requirement(text: str) -> LabelSelectorRequirement:
    if match := _EQUALITY.fullmatch(text):
        operator = NOT_IN if match[2] == "!=" else IN
        return LabelSelectorRequirement(key=match[1], operator=operator, values=(match[3],))
    if match := _SET.fullmatch(text):
        values = tuple(value.strip() for value in match[3].split(","))
        operator = IN if match[2] == "in" else NOT_IN
        return LabelSelectorRequirement(key=match[1], operator=operator, values=values)
    if match := _EXISTENCE.fullmatch(text):
        operator = DOES_NOT_EXIST if match[1] else EXISTS
        return LabelSelectorRequirement(key=match[2], operator=operator)
    raise ValueError(f'"{text}" is no requirement on labels, such as app=web or app in (a,b)')
