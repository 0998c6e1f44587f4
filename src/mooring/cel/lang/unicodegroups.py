"""Names of groups of Unicode in regular expressions, for RE2.

Go knows more names than RE2, and does not mind case, spaces, hyphens and underscores in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_VISIBLE: Final = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}"
_ASSIGNED: Final = _VISIBLE + r"\p{Cc}\p{Cf}\p{Co}\p{Cs}"
# What RE2 has no name for: the body of a class, and whether the group is everything else.
_UNIONS: Final = {
    "ascii": (r"\x{0}-\x{7f}", False),
    "assigned": (_ASSIGNED, False),
    "c": (_VISIBLE, True),  # with what is unassigned, unlike RE2's
    "cn": (_ASSIGNED, True),
    "lc": (r"\p{Lu}\p{Ll}\p{Lt}", False),
}
_ALIASES: Final = {
    "casedletter": "lc",
    "closepunctuation": "Pe",
    "cntrl": "Cc",
    "combiningmark": "M",
    "connectorpunctuation": "Pc",
    "control": "Cc",
    "currencysymbol": "Sc",
    "dashpunctuation": "Pd",
    "decimalnumber": "Nd",
    "digit": "Nd",
    "enclosingmark": "Me",
    "finalpunctuation": "Pf",
    "format": "Cf",
    "initialpunctuation": "Pi",
    "letter": "L",
    "letternumber": "Nl",
    "lineseparator": "Zl",
    "lowercaseletter": "Ll",
    "mark": "M",
    "mathsymbol": "Sm",
    "modifierletter": "Lm",
    "modifiersymbol": "Sk",
    "nonspacingmark": "Mn",
    "number": "N",
    "openpunctuation": "Ps",
    "other": "c",
    "otherletter": "Lo",
    "othernumber": "No",
    "otherpunctuation": "Po",
    "othersymbol": "So",
    "paragraphseparator": "Zp",
    "privateuse": "Co",
    "punct": "P",
    "punctuation": "P",
    "separator": "Z",
    "spaceseparator": "Zs",
    "spacingmark": "Mc",
    "surrogate": "Cs",
    "symbol": "S",
    "titlecaseletter": "Lt",
    "unassigned": "cn",
    "uppercaseletter": "Lu",
}


def class_body(name: str, is_known: Callable[[str], bool]) -> tuple[str, bool] | None:
    """Return the body of the class that a group is, and whether it is to be negated.

    None: there is no such group. `is_known` tells whether RE2 knows a name.
    """
    words = re.split("[ _-]+", name.strip(" _-"))
    key = "".join(words).lower()
    alias = _ALIASES.get(key, key)
    if alias in _UNIONS:
        return _UNIONS[alias]
    known_as = alias if alias != key else "_".join(word.capitalize() for word in words)
    if not (known_as.isascii() and known_as.replace("_", "").isalnum() and is_known(known_as)):
        return None
    return f"\\p{{{known_as}}}", False
