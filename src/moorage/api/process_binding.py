"""Environment variables that bind a process outside of containers to CPUs, memory and devices.

No container runtime can give such a process a part of the machine. Drivers set variables instead,
and the runtime that starts the process applies them:

    MOORAGE_CPUSET_…=0-3,8                  runs on these CPUs; several are added together
    MOORAGE_MEMS_…=0                        takes memory of these NUMA nodes; the same
    MOORAGE_LIST_…__CUDA_VISIBLE_DEVICES=a  is an item of that variable; several are joined

The end of a name distinguishes claims and requests. Without variables nothing is bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

CPUS = "MOORAGE_CPUSET"
MEMORY_NODES = "MOORAGE_MEMS"
ITEMS = "MOORAGE_LIST"
_BETWEEN = "__"  # an item's variable and what keeps it apart
_STRANGE = re.compile(r"[^A-Za-z0-9_]")
_ITEM = re.compile(rf"{ITEMS}_.*?{_BETWEEN}([A-Za-z][A-Za-z0-9_]*)")


class ProcessBinding(NamedTuple):
    """The binding that all variables of a container give together."""

    cpus: tuple[str, ...] = ()  # lists as the kernel writes them, to be added together
    memory_nodes: tuple[str, ...] = ()
    variables: dict[str, str] = {}  # noqa: RUF012  # to be set besides; never changed


def binding_variable(prefix: str, *parts: str) -> str:
    """Return the name of a variable: a prefix, and what keeps it apart from others."""
    return "_".join((prefix, *(_STRANGE.sub("_", part) for part in parts)))


def item_variable(name: str, *parts: str) -> str:
    """Return the variable name of one item of a list variable."""
    ends = (re.sub("_+", "_", _STRANGE.sub("_", part)).strip("_") for part in parts)
    return f"{ITEMS}_{'_'.join(ends)}{_BETWEEN}{name}"


def process_binding(environment: Mapping[str, str]) -> ProcessBinding:
    """Return the bindings of a container's variables, sorted by variable name."""
    items: dict[str, list[str]] = {}
    for name in sorted(environment):
        found = _ITEM.fullmatch(name)
        if found is not None:
            items.setdefault(found[1], []).extend(environment[name].split(","))
    joined = {name: ",".join(_once(values)) for name, values in items.items()}
    return ProcessBinding(_lists(environment, CPUS), _lists(environment, MEMORY_NODES), joined)


def _lists(environment: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    names = (each for each in sorted(environment) if _begins(each, prefix))
    return tuple(environment[name] for name in names)


def _begins(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}_")


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))
