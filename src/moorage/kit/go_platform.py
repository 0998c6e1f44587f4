"""Go's names for operating systems and processors, which clients of Kubernetes expect.

Go says linux/amd64 where Python says Linux and x86_64. Names missing here are the same in both,
except for case.
"""

from __future__ import annotations

import re
import sys
from typing import Final

_SYSTEMS: Final = {"sunos": "solaris", "cygwin": "windows", "msys": "windows", "mingw": "windows"}
_PROCESSORS: Final = {
    "aarch64": "arm64",
    "aarch64_be": "arm64be",
    "i86pc": "amd64",
    "loongarch64": "loong64",
    "powerpc": "ppc",
    "powerpc64": "ppc64",
    "powerpc64le": "ppc64le",
    "x64": "amd64",
    "x86": "386",
    "x86_64": "amd64",
    "wasm32": "wasm",
}
_FAMILIES: Final = ((re.compile(r"i[3-9]86"), "386"), (re.compile(r"arm(v[2-9].*)?"), "arm"))
# The kernel uses these names for both byte orders.
_BOTH_ORDERS: Final = frozenset({"mips", "mips64"})


def go_os(system: str) -> str:
    """Return GOOS for a result of platform.system()."""
    name = system.lower().partition("_nt")[0]
    return _SYSTEMS.get(name, name)


def go_arch(machine: str, byteorder: str = sys.byteorder) -> str:
    """Return GOARCH for a result of platform.machine()."""
    name = machine.lower()
    if name in _BOTH_ORDERS:
        return f"{name}le" if byteorder == "little" else name
    for pattern, family in _FAMILIES:
        if pattern.fullmatch(name):
            return family
    return _PROCESSORS.get(name, name)
