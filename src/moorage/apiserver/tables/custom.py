"""Table printers of definitions, and of custom resources: the columns of their definitions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from moorage.api.apiextensions import (
    ESTABLISHED,
    CustomResourceColumnDefinition,
    CustomResourceDefinition,
)
from moorage.api.codec import to_tree
from moorage.api.errors import ApiError
from moorage.api.kinds import Kind
from moorage.api.raw_json import marshal
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.apiserver.custom_resources.fields import go_text, values_at
from moorage.apiserver.tables.columns import (
    CREATED_AT,
    NAME,
    Cell,
    Column,
    Printer,
    age,
    text,
    wide,
)
from moorage.validation.custom_resources.definition import definition_of

_AGE = CustomResourceColumnDefinition(
    name="Age",
    type="date",
    json_path=".metadata.creationTimestamp",
    description="Time of creation.",
)

_COLUMN = "Custom resource definition column (in JSONPath format)"


def _definition(value: CustomResourceDefinition, _: Timestamp) -> list[Cell]:
    spec = value.spec
    served = (
        f"{version.name}(storage)" if version.storage else version.name
        for version in spec.versions
        if version.served
    )
    return [
        value.metadata.name,
        spec.scope,
        ",".join(sorted(served)),
        str(value.metadata.creation_timestamp or NO_TIME),
        spec.group,
        spec.names.kind,
        ",".join(spec.names.short_names),
        value.is_true(ESTABLISHED),
    ]


DEFINITION = Printer(
    (
        NAME,
        text("Scope", "Whether the objects are in namespaces."),
        text("Versions", "Versions that are served."),
        CREATED_AT,
        wide("Group", "API group."),
        wide("Kind", "Kind of the objects."),
        wide("ShortNames", "Short names of the resource."),
        Column(
            name="Established",
            type="boolean",
            description="Whether the resource is served.",
            priority=1,
        ),
    ),
    _definition,
)


@lru_cache(maxsize=256)
def printer_of(kind: Kind) -> Printer:
    """Return the printer of a custom kind in its version."""
    version = definition_of(kind).version(kind.api_version)
    given = version.given.additional_printer_columns or (_AGE,)
    columns = tuple(
        Column(
            name=each.name,
            type=each.type,
            format=each.format,
            description=each.description or f"{_COLUMN}: {each.json_path}",
            priority=each.priority,
        )
        for each in given
    )

    def cells(value: Any, now: Timestamp) -> list[Cell]:
        tree = to_tree(value)
        return [value.metadata.name, *(_cell(each, tree, now) for each in given)]

    return Printer((NAME, *columns), cells)


def _cell(column: CustomResourceColumnDefinition, tree: Any, now: Timestamp) -> Any:
    """Return the cell of a column, or None if the object has no value for it."""
    values = values_at(tree, column.json_path)
    if not values or values[0] is None:
        return None
    value = values[0]
    if column.type == "string":
        return marshal(value).decode() if isinstance(value, dict | list) else go_text(value)
    return _age(value, now) if column.type == "date" else _typed(value, column.type)


def _typed(value: Any, kind: str) -> Any:
    """Return a value of its column's type, or None if it has another type."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "integer" if is_number:
            return int(value)
        case "number" if is_number:
            return value
        case "boolean" if isinstance(value, bool):
            return value
    return None


def _age(value: Any, now: Timestamp) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return age(Timestamp.parse(value), now)
    except ApiError:
        return "<invalid>"
