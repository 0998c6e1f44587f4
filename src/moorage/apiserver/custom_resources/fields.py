"""Values at JSON paths of custom resources: printer columns, field selectors, and /scale.

    path  = 1*step
    step  = "." name | "['" name "']" | "[" index "]" | "[*]" | '[?(@.' name "==" '"' text '")]'

A step may select several values, and the next step applies to each. Backslashes escape dots in
names. Kubernetes supports more steps; paths with those select nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.apps import Scale, ScaleSpec, ScaleStatus
from moorage.api.custom_resource import CustomResource
from moorage.api.kinds import Kind
from moorage.api.meta import ObjectMeta
from moorage.apiserver.http.status import bad_request, internal
from moorage.validation.custom_resources.definition import definition_of
from moorage.validation.custom_resources.schema_values import go_number
from moorage.validation.custom_resources.strategy import NestedFieldError, nested_field

VALUES_MAX: Final = 1000  # per path

_STEP: Final = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\\])+)
    |\[\s*(?P<quote>['"])(?P<quoted>(?:\\.|(?!(?P=quote)).)*)(?P=quote)\s*\]
    |\[(?P<index>-?[0-9]{1,9})\]
    |(?P<all>\[\*\]|\.\*)
    |\[\?\(\s*@\.(?P<key>[A-Za-z0-9_.\\/-]+)\s*(?P<sign>==|!=)\s*
       (?P<mark>['"])(?P<value>(?:\\.|(?!(?P=mark)).)*)(?P=mark)\s*\)\]""",
    re.VERBOSE,
)


class _Step(NamedTuple):
    name: str | None = None
    position: int | None = None
    key: tuple[str, ...] = ()
    value: str = ""
    is_equal: bool = True


_ALL: Final = _Step()


@lru_cache(maxsize=1024)
def read_path(text: str) -> tuple[_Step, ...] | None:
    """Return the steps of a path, or None if one is not supported."""
    steps: list[_Step] = []
    place = 0
    while place < len(text):
        found = _STEP.match(text, place)
        if found is None:
            return None
        place = found.end()
        if found["all"]:
            steps.append(_ALL)
        elif found["name"] is not None:
            steps.append(_Step(name=_unescaped(found["name"])))
        elif found["quoted"] is not None:
            steps.append(_Step(name=_unescaped(found["quoted"])))
        elif found["index"] is not None:
            steps.append(_Step(position=int(found["index"])))
        else:
            key = tuple(map(_unescaped, re.split(r"(?<!\\)\.", found["key"])))
            is_equal = found["sign"] == "=="
            steps.append(_Step(key=key, value=_unescaped(found["value"]), is_equal=is_equal))
    return tuple(steps)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def values_at(tree: Any, path: str) -> list[Any]:
    """Return the values at a path, at most VALUES_MAX."""
    steps = read_path(path)
    if steps is None:
        return []
    found = [tree]
    for step in steps:
        found = [value for each in found for value in _after(step, each)][:VALUES_MAX]
    return found


def _after(step: _Step, value: Any) -> list[Any]:
    if step.name is not None:
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    if step.position is not None:
        is_there = isinstance(value, list) and -len(value) <= step.position < len(value)
        return [value[step.position]] if is_there else []
    if step.key:
        items = value if isinstance(value, list) else []
        return [item for item in items if (_text(item, step.key) == step.value) == step.is_equal]
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _text(value: Any, key: tuple[str, ...]) -> str | None:
    for name in key:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return go_text(value)


def go_text(value: Any) -> str:
    """Return a value as Go's Sprint prints it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return go_number(value)
        case list():
            return f"[{' '.join(map(go_text, value))}]"
        case dict():
            parts = (f"{name}:{go_text(value[name])}" for name in sorted(value))
            return f"map[{' '.join(parts)}]"
    return str(value)


# --- field selectors ------------------------------------------------------------------------------


def selectable_fields(kind: Kind) -> tuple[str, ...]:
    """Return the fields of a kind that field selectors may use, besides those of metadata."""
    version = definition_of(kind).version(kind.api_version)
    return tuple(each.json_path.removeprefix(".") for each in version.given.selectable_fields)


def values_of_fields(value: CustomResource) -> dict[str, str]:
    """Return the selectable fields of an object in all versions."""
    definition: Any = type(value).definition
    found: dict[str, str] = {}
    for version in definition.versions.values():
        for each in version.given.selectable_fields:
            values = values_at(value.content, each.json_path)
            text = "" if not values or values[0] is None else go_text(values[0])
            found[each.json_path.removeprefix(".")] = text
    return found


# --- /scale ---------------------------------------------------------------------------------------


def custom_scale(value: CustomResource, kind: Kind, missing: int | None = None) -> Scale:
    """Return the scale of an object.

    An object without a number of replicas has `missing`; it is an error if that is None.
    """
    scale = definition_of(kind).version(kind.api_version).scale
    assert scale is not None
    content, metadata = value.content, value.metadata
    try:
        wanted = nested_field(content, scale.spec_replicas_path)
        found = nested_field(content, scale.status_replicas_path)
        selector = nested_field(content, scale.label_selector_path or ".")
    except NestedFieldError as error:
        raise bad_request(str(error)) from None
    wanted = missing if wanted is None else wanted
    if wanted is None:
        raise internal(f'the spec replicas field "{scale.spec_replicas_path}" does not exist')
    return Scale(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            creation_timestamp=metadata.creation_timestamp,
        ),
        spec=ScaleSpec(replicas=wanted),
        status=ScaleStatus(replicas=found or 0, selector=selector or ""),
    )


def with_replicas(value: CustomResource, kind: Kind, replicas: int) -> CustomResource:
    """Return an object with another number of replicas in its spec."""
    scale = definition_of(kind).version(kind.api_version).scale
    assert scale is not None
    steps = scale.spec_replicas_path.removeprefix(".").split(".")
    return replace(value, content=_with(value.content, steps, replicas))


def _with(tree: dict[str, Any], steps: list[str], value: int) -> dict[str, Any]:
    first, *rest = steps
    if not rest:
        return {**tree, first: value}
    below = tree.get(first)
    return {**tree, first: _with(below if isinstance(below, dict) else {}, rest, value)}
