"""From a YAML scalar event to a value or to the key of a mapping; tags are handled here."""

from __future__ import annotations

from yaml.events import ScalarEvent

from mooring.api.documents.numbers import (
    NumberText,
    ScalarRefusedError,
    excerpt,
    float_key,
    from_yaml_float,
)
from mooring.api.documents.schemas import Plain, Schema

_STANDARD = "tag:yaml.org,2002:"
_TEXT_TAGS = {"!", f"{_STANDARD}str", f"{_STANDARD}timestamp"}
_MERGE_TAG = f"{_STANDARD}merge"
_BINARY_TAG = f"{_STANDARD}binary"

Scalar = str | int | NumberText | bool | None


def is_merge(event: ScalarEvent) -> bool:
    """Tell whether a key is `<<`, which merges other mappings into its own."""
    return event.value == "<<" and (
        event.tag == _MERGE_TAG or (event.tag is None and event.implicit[0])
    )


def value_of(event: ScalarEvent, schema: Schema) -> Scalar:
    """Return the JSON value of a scalar."""
    plain = _resolve(event, schema)
    return from_yaml_float(plain) if isinstance(plain, float) else plain


def key_of(event: ScalarEvent, schema: Schema) -> str:
    """Return the JSON key of a scalar, as sigs.k8s.io/yaml writes those that are not strings."""
    plain = _resolve(event, schema)
    if isinstance(plain, str):
        return plain
    if plain is None:
        raise ScalarRefusedError("null cannot be the key of a mapping")
    if isinstance(plain, bool):
        return "true" if plain else "false"
    return float_key(plain) if isinstance(plain, float) else str(plain)


def short_tag(tag: str) -> str:
    """Return a tag as people write it: `!!int`, `!mine`."""
    if tag.startswith(_STANDARD):
        return excerpt(f"!!{tag.removeprefix(_STANDARD)}")
    return excerpt(tag)


def check_collection_tag(tag: str | None, name: str) -> None:
    """Refuse a tag that makes a mapping ("map") or a list ("seq") something else."""
    if tag is not None and tag not in ("!", f"{_STANDARD}{name}"):
        raise ScalarRefusedError(f"tag {short_tag(tag)} is not supported on a !!{name}")


def _resolve(event: ScalarEvent, schema: Schema) -> Plain:
    if event.tag is not None:
        return _tagged(event.tag, event.value, schema)
    return schema(event.value) if event.implicit[0] else event.value


def _tagged(tag: str, text: str, schema: Schema) -> Plain:
    if tag in _TEXT_TAGS:
        return text
    name = short_tag(tag)
    if tag == _BINARY_TAG:
        raise ScalarRefusedError(f"tag {name} is not supported: write the base64 text without it")
    if name not in ("!!bool", "!!float", "!!int", "!!null"):
        raise ScalarRefusedError(f"tag {name} is not supported")
    plain = schema(text)
    found = _kind(plain)
    if found == name:
        return plain
    if isinstance(plain, int) and (found, name) == ("!!int", "!!float"):
        return float(plain)
    raise ScalarRefusedError(f"cannot decode {found} `{excerpt(text)}` as a {name}")


def _kind(plain: Plain) -> str:
    match plain:
        case None:
            return "!!null"
        case bool():
            return "!!bool"
        case int():
            return "!!int"
        case float():
            return "!!float"
    return "!!str"
