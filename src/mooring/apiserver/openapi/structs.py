"""The structs that kinds are made of, by the names that Kubernetes gives them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mooring.apiserver.openapi.hints import declared_fields, element_hint, struct_of
from mooring.apiserver.patching import shapes
from mooring.apiserver.patching.shapes import Shape


class StructsFound:
    """Shapes and our structs, as far as there are any, found by walking down from kinds."""

    def __init__(self) -> None:
        self.shapes: dict[str, Shape | None] = {}
        self.structs: dict[str, type[Struct]] = {}

    def learn(self, shape: Shape | None, hint: Any) -> None:
        """Note the structs below a value."""
        if is_free(shape):
            return
        struct = struct_of(hint)
        if struct is not None or (shape is not None and shape.is_struct):
            self._learn_struct(struct_shape(shape), struct)
        elif shape is not None and shape.list is not None:
            self.learn(shape.list.element, element_hint(hint))
        elif shape is not None and shape.map is not None:
            self.learn(shape.map.element, element_hint(hint))
        elif shape is None and element_hint(hint) is not Any:
            self.learn(None, element_hint(hint))

    def _learn_struct(self, shape: Shape | None, struct: type[Struct] | None) -> None:
        struct_name = shape.name if shape is not None else struct.__name__ if struct else ""
        is_new_struct = struct is not None and struct_name not in self.structs
        if struct_name in self.shapes and not is_new_struct:
            return
        self.shapes.setdefault(struct_name, shape)
        if struct is not None:
            self.structs.setdefault(struct_name, struct)
        known = declared_fields(struct) if struct is not None else {}
        listed = shape.map.fields if shape is not None and shape.map is not None else {}
        for field_name in {**listed, **known}:
            field = listed.get(field_name)
            self.learn(None if field is None else field.shape, known.get(field_name, Any))


def is_free(shape: Shape | None) -> bool:
    """Return whether a value may be any JSON."""
    return shape is shapes.JSON or shape is shapes.DEDUCED


def struct_shape(shape: Shape | None) -> Shape | None:
    """Return the shape if it is a struct's: ours may have one where Kubernetes had a word."""
    return shape if shape is not None and shape.is_struct else None
