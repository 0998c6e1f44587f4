"""Paths below `device`, as they are written, and the fields that they may mean.

device.attributes["d"].name       regular: a map, a domain and a name
device.attributes["d/name"]       the domain and the name in one
device.attributes["name"]         a name without its domain
device.attributes.gpu.example.com.name    a domain that needs brackets
device.name2, attributes["d"].name        without `device`, or without a map
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from moorage.cel.lang import ast
from moorage.insight.expressions.published_devices import similar_fields
from moorage.insight.expressions.syntax import DEVICE, FIELDS, MAPS, DeviceField
from moorage.kit.similar_names import nearest

MEANT_MAX: Final = 4


class DevicePath(NamedTuple):
    """A variable with fields and keys below it."""

    node: ast.Expr
    root: str
    keys: tuple[str, ...]

    @property
    def is_foreign(self) -> bool:
        """Whether the variable is no device, and is not meant as one."""
        return self.root != DEVICE and not self._lacks_device

    @property
    def _lacks_device(self) -> bool:
        is_map = self.root in MAPS or nearest(self.root, MAPS) is not None
        return (is_map and bool(self.keys)) or self.root.lower() in (DEVICE, "dev", "self")

    @property
    def is_regular(self) -> bool:
        """Whether it is read as devices are: a map, a domain, a name; a field; or whole."""
        if self.root != DEVICE:
            return not self._lacks_device
        if not self.keys:
            return True
        if self.keys[0] in MAPS:
            return len(self.keys) == 3 and "/" not in self.keys[1]
        return self.keys[0] in FIELDS and len(self.keys) == 1


def device_paths(node: ast.Expr, *, any_root: bool = False) -> Iterator[DevicePath]:
    """Yield the longest paths below a node; those of other variables than devices if asked for."""
    bound: set[str] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, ast.Comprehension):
            bound |= {current.iter_var, current.iter_var2 or "", current.accu_var}
        found = _path(current)
        if found is None:
            waiting.extend(reversed(ast.children(current)))
        elif found.root not in bound and (any_root or not found.is_foreign):
            yield found


def _path(node: ast.Expr) -> DevicePath | None:
    keys: list[str] = []
    current = node
    while True:
        match current:
            case ast.Ident(name=name):
                return DevicePath(node, name.removeprefix("."), tuple(reversed(keys)))
            case ast.Select(operand=operand, field=field):
                keys.append(field)
                current = operand
            case ast.Call(
                function="_[_]" | "_[?_]" | "_?._", args=(target, ast.Literal(value=str(key)))
            ):
                keys.append(key)
                current = target
            case _:
                return None


def meant_by(path: DevicePath, known: Iterable[DeviceField]) -> list[DeviceField | str]:
    """Return the fields that a path may mean, the likeliest first."""
    fields = [each for each in known if each.name]
    keys = path.keys if path.root == DEVICE else (path.root, *path.keys)
    if path.root.lower() in (DEVICE, "dev", "self"):
        keys = path.keys
    if not keys:
        return [DEVICE]
    first = keys[0] if keys[0] in (*MAPS, *FIELDS) else nearest(keys[0], (*MAPS, *FIELDS))
    found: list[DeviceField | str] = []
    if first is not None and first in FIELDS:
        found.append(f"{DEVICE}.{first}")
    rest = keys[1:] if first in MAPS else keys
    if rest:
        found += _named(rest, first or MAPS[0], fields)
    return list(dict.fromkeys(found))[:MEANT_MAX]


def _named(keys: tuple[str, ...], map_: str, fields: list[DeviceField]) -> list[DeviceField]:
    """Return fields by the keys below a map, however these are divided."""
    whole = ".".join(keys).replace("/", ".")
    exact = [each for each in fields if f"{each.domain}.{each.name}" == whole]
    begun = [each for each in fields if whole.startswith(f"{each.domain}.{each.name}.")]
    domain, slash, name = "/".join(keys).rpartition("/")
    if not slash and len(keys) == 1:
        domain, name = "", keys[0]
    named = [each for each in fields if each.name == name]
    near = similar_fields(DeviceField(map_ if map_ in MAPS else MAPS[0], domain, name), fields)
    last = similar_fields(DeviceField(MAPS[0], ".".join(keys[:-1]), keys[-1]), fields)
    ordered = dict.fromkeys((*exact, *begun, *named, *near, *last))
    return sorted(ordered, key=lambda each: each.field != map_)
