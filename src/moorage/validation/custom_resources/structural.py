"""Structural schemas: what pruning, defaulting, merging and expressions need to know.

A schema is structural if every field has its type in one place; value validations (`anyOf`, `not`
and so on) only restrict it. `structural_rules` checks that; this module assumes it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from moorage.api.json_schema import Schema

META_FIELDS: Final = frozenset(("apiVersion", "kind", "metadata"))


class Missing:
    """The type of MISSING."""


MISSING: Final = Missing()


class Structural(NamedTuple):
    """One node of a structural schema.

    additional   of the values of other properties; True: of any kind; None: there are none
    default      MISSING if there is none; default_bytes: of its JSON
    """

    tree: Schema
    type: str = ""
    nullable: bool = False
    default: Any = MISSING
    items: Structural | None = None
    properties: dict[str, Structural] = {}  # noqa: RUF012  # never written to
    additional: Structural | bool | None = None
    preserves_unknown: bool = False
    is_embedded: bool = False
    is_int_or_string: bool = False
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: str | None = None
    default_bytes: int = 0

    @property
    def additional_schema(self) -> Structural | None:
        """The schema of undeclared properties, if they have one."""
        return self.additional if isinstance(self.additional, Structural) else None

    def below(self, name: str) -> Structural | None:
        """Return the schema of a property, declared or not."""
        return self.properties.get(name) or self.additional_schema

    @property
    def has_defaults(self) -> bool:
        """Whether this node or one below has a default."""
        if self.default is not MISSING:
            return True
        below = (self.items, self.additional_schema, *self.properties.values())
        return any(each.has_defaults for each in below if each is not None)


def structural(tree: Schema) -> Structural:
    """Return the nodes of a schema."""
    items, additional = tree.get("items"), tree.get("additionalProperties")
    return Structural(
        tree,
        type=tree.get("type", ""),
        nullable=tree.get("nullable", False),
        default=tree.get("default", MISSING),
        items=structural(items) if isinstance(items, dict) else None,
        properties={name: structural(each) for name, each in tree.get("properties", {}).items()},
        additional=structural(additional) if isinstance(additional, dict) else additional,
        preserves_unknown=tree.get("x-kubernetes-preserve-unknown-fields", False),
        is_embedded=tree.get("x-kubernetes-embedded-resource", False),
        is_int_or_string=tree.get("x-kubernetes-int-or-string", False),
        list_type=tree.get("x-kubernetes-list-type"),
        list_map_keys=tuple(tree.get("x-kubernetes-list-map-keys", ())),
        map_type=tree.get("x-kubernetes-map-type"),
        default_bytes=len(msgspec.json.encode(tree["default"])) if "default" in tree else 0,
    )
