"""Mutations of objects that know the type of every field, by the schema tables.

A mutation walks from the object down, by what the object has, and changes one place: a hostile
value of the right type, a value of another type, a field that the type has and the object lacks
(with everything below it), an unknown field, a repetition, a deep nest, another key.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from moorage.api.schema import Field, api_type
from soak._hostile.values import COMMANDS, WRONG, Lexicon, copied, pick

Tree = dict[str, Any]

DEPTH_MAX = 7
HEAD = ("apiVersion", "kind")  # without them, nothing comes far
STOP = 0.12  # chance to change the place that the walk has come to
# Plausible values, so that what is grown now and then passes.
PLAUSIBLE: dict[str, tuple[Any, ...]] = {
    "name": ("a", "b", "main", "x"),
    "key": ("k", "a", "x.example.com/y"),
    "operator": ("Exists", "In", "Equal", "Lt", "NotIn", "DoesNotExist"),
    "effect": ("NoSchedule", "NoExecute", "None"),
    "image": ("none",),
    "driver": ("x.example.com",),
    "topologyKey": ("kubernetes.io/hostname",),
    "fieldPath": ("metadata.name", "spec.nodeName", "metadata.annotations['x']", "status.podIPs"),
    "mountPath": ("/v", "v", "/", "/proc", "/etc/passwd", "../../x"),
    "expression": ("true", "device.driver == 'x.example.com'"),
    "deviceClassName": ("a", "b"),
    "kind": ("Pod", "Node", "x"),
    "apiVersion": ("v1", "x/y/z"),
}


@cache
def fields_of(type_name: str) -> tuple[Field, ...]:
    """Return the fields of a type as JSON has them."""
    return tuple(api_type(type_name).json_fields())


@cache
def field_map(type_name: str) -> dict[str, Field]:
    """Return the fields of a type by name."""
    return {field.name: field for field in fields_of(type_name)}


class Grammar:
    """Grows and mutates objects of a case."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self._changes: tuple[Callable[[Random, Any, Any, Field | None], None], ...] = (
            *(self._set_hostile,) * 9,
            *(self._set_wrong,) * 2,
            *(self._add_field,) * 5,
            *(self._remove, self._repeat, self._rename, self._add_unknown, self._nest),
        )

    # --- growing ------------------------------------------------------------------------------

    def grow(self, random: Random, type_name: str, depth: int = 0) -> Tree:
        """Return an object of a type with some of its fields."""
        fields = fields_of(type_name)
        chance = min(1.0, (3.0 if depth < 2 else 1.5) / (len(fields) or 1))
        return {
            field.name: self.value(random, field, depth + 1)
            for field in fields
            if random.random() < (0.9 if field.markers.required else chance)
        }

    def value(self, random: Random, field: Field, depth: int) -> Any:
        """Return a value for a field."""
        if depth > DEPTH_MAX and field.is_struct:
            return {}
        if field.is_list:
            return [self._item(random, field, depth) for _ in range(int(random.random() * 3))]
        if field.is_map:
            keys = (self._key(random) for _ in range(int(random.random() * 3)))
            return {key: self._item(random, field, depth) for key in keys}
        return self._item(random, field, depth)

    def _item(self, random: Random, field: Field, depth: int) -> Any:
        if field.is_struct:
            return self.grow(random, field.type, depth)
        if field.markers.enum and random.random() < 0.8:
            return pick(random, field.markers.enum)
        if random.random() < 0.5 and field.name in PLAUSIBLE:
            return pick(random, PLAUSIBLE[field.name])
        return self._scalar(random, field)

    def _scalar(self, random: Random, field: Field) -> Any:
        if field.type == "int32" and random.random() < 0.5:
            return int(random.random() * 5)
        return self.lexicon.of_type(random, field.type)

    def _key(self, random: Random) -> str:
        return (
            pick(random, ("a", "k", "cpu", "x/y")) if random.random() < 0.6 else self._odd(random)
        )

    def _odd(self, random: Random) -> str:
        return self.lexicon.string(random)

    # --- mutating -----------------------------------------------------------------------------

    def mutate(self, random: Random, tree: Tree, type_name: str) -> None:
        """Change one place of an object."""
        holder: Any = tree
        type_here: str | None = type_name
        key: Any = None
        field: Field | None = None
        for _ in range(30):
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = pick(random, keys)
            if key in HEAD and random.random() < 0.9:
                key = keys[-1]
            if isinstance(holder, dict) and type_here:
                field = field_map(type_here).get(key)
            below = holder[key]
            type_below = field.type if field is not None and field.is_struct else None
            if (
                field is not None
                and (field.is_list or field.is_map)
                and isinstance(below, dict | list)
            ):
                if random.random() < STOP or not below:
                    break
                holder, type_here = below, None
                key = pick(
                    random, list(below) if isinstance(below, dict) else list(range(len(below)))
                )
                below = holder[key]
            if not isinstance(below, dict | list) or not below or random.random() < STOP:
                break
            holder, type_here = below, type_below
        self._change(random, holder, key, field, type_here)

    def _change(
        self, random: Random, holder: Any, key: Any, field: Field | None, type_here: str | None
    ) -> None:
        if key is None or not holder:
            return
        if field is not None and field.name == "command" and random.random() < 0.9:
            holder[key] = list(pick(random, COMMANDS)) if isinstance(holder, dict) else "x"
            return
        if (
            field is not None
            and field.name == "path"
            and type_here == "core/v1.HostPathVolumeSource"
        ):
            holder[key] = pick(random, self.lexicon.free)
            return
        change = pick(random, self._changes)
        if change == self._add_field and type_here is not None and isinstance(holder, dict):
            self._add_field_of(random, holder, type_here)
        else:
            change(random, holder, key, field)

    def _set_hostile(self, random: Random, holder: Any, key: Any, field: Field | None) -> None:
        if field is None:
            holder[key] = self._odd(random)
        elif field.is_struct:
            holder[key] = self.value(random, field, 3)
        else:
            value = self.lexicon.of_type(random, field.type)
            is_whole = isinstance(holder, dict) and not (field.is_map and key != field.name)
            holder[key] = [value] if field.is_list and is_whole else value

    def _set_wrong(self, random: Random, holder: Any, key: Any, _: Field | None) -> None:
        holder[key] = copied(pick(random, WRONG))

    def _add_field(self, random: Random, holder: Any, key: Any, field: Field | None) -> None:
        self._set_hostile(random, holder, key, field)

    def _add_field_of(self, random: Random, holder: Tree, type_here: str) -> None:
        field = pick(random, fields_of(type_here))
        if type_here == "core/v1.HostPathVolumeSource" and field.name == "path":
            holder["path"] = pick(random, self.lexicon.free)
        elif field.name == "hostPath":
            holder["hostPath"] = {"path": pick(random, self.lexicon.free)}
        elif field.name == "command":
            holder["command"] = list(pick(random, COMMANDS))
        else:
            holder[field.name] = self.value(random, field, 2)

    def _remove(self, _: Random, holder: Any, key: Any, __: Field | None) -> None:
        del holder[key]

    def _repeat(self, random: Random, holder: Any, key: Any, _: Field | None) -> None:
        value = holder[key]
        if isinstance(holder, list):
            holder.extend(copied(value) for _ in range(pick(random, (1, 1, 2, 40, 400))))
        elif isinstance(value, list) and value:
            value.extend(copied(value[0]) for _ in range(pick(random, (1, 1, 2, 40, 400))))
        else:
            holder[f"{key}-2"] = copied(value)

    def _rename(self, random: Random, holder: Any, key: Any, _: Field | None) -> None:
        if isinstance(holder, dict):
            holder[self._odd(random)] = holder.pop(key)

    def _add_unknown(self, random: Random, holder: Any, _: Any, __: Field | None) -> None:
        if isinstance(holder, dict):
            holder[pick(random, ("unknown", "Spec", "metaData", "", "a.b"))] = self._odd(random)

    def _nest(self, random: Random, holder: Any, key: Any, _: Field | None) -> None:
        value: Any = holder[key]
        is_list = random.random() < 0.5
        for _level in range(pick(random, (3, 30, 100))):
            value = [value] if is_list else {"a": value}
        holder[key] = value
