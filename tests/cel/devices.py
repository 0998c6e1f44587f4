"""Devices of recorded cases, as expressions see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.cel.device_values import device_variables
from moorage.cel.lang.attributes import ABSENT, Path
from moorage.cel.lang.errors import EvalError


def recorded_variables(device: dict[str, Any]) -> dict[str, Any] | None:
    """Return the variables of a recorded device, None if it has a value that is none."""

    def read(tree: Any, struct: Any) -> dict[str, Any]:
        return {name: decode_tree(value, struct).value for name, value in (tree or {}).items()}

    try:
        return device_variables(
            device.get("driver") or "",
            read(device.get("attributes"), DeviceAttribute),
            read(device.get("capacity"), DeviceCapacity),
        )
    except EvalError:
        return None


def batch(devices: Iterable[dict[str, Any]], paths: Sequence[Path]) -> Iterator[tuple[Any, ...]]:
    """Yield for each device the values at the end of the paths."""
    return (tuple(_cell(variables, path) for path in paths) for variables in devices)


def _cell(value: Any, path: Path) -> Any:
    for key in path:
        if key not in value:
            return ABSENT
        value = value[key]
    return value
