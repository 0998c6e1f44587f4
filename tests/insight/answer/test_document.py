"""What `moor explain -o json` prints is as its published schema says, and stays so."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from moorage.cli.explain import command as explain
from moorage.insight.answer.changes.edits import APPEND, REMOVED, Edit, edited_tree, json_patch
from tests.insight.answer.asking import FOLDER

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs/reference/explain.schema.json").read_text(encoding="utf-8"))
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
}


def faults(value: Any, schema: Mapping[str, Any], place: str = "$") -> Iterator[str]:
    """Yield what is not as a schema says; properties that it does not have are faults, too."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    unknown = schema.keys() - {
        *("$schema", "$defs", "title", "description", "default", "type", "properties", "required"),
        *("items", "anyOf", "enum", "maxLength"),
    }
    assert not unknown, f"the checker does not know {unknown}"
    if "anyOf" in schema:
        found = [list(faults(value, each, place)) for each in schema["anyOf"]]
        yield from min(found, key=len)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    kind = schema.get("type")
    if kind and (not isinstance(value, _TYPES[kind]) or (kind == "integer" and value is True)):
        yield f"{place}: {value!r} is no {kind}"
        return
    if len(value) > schema["maxLength"] if "maxLength" in schema else False:
        yield f"{place}: longer than {schema['maxLength']}"
    if "properties" in schema:
        yield from _object_faults(value, schema, place)
    for number, each in enumerate(value if "items" in schema else ()):
        yield from faults(each, schema["items"], f"{place}[{number}]")


def _object_faults(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    known = schema["properties"]
    yield from (f"{place}: no {name}" for name in schema.get("required", ()) if name not in value)
    for name, each in value.items():
        if name in known:
            yield from faults(each, known[name], f"{place}.{name}")
        else:
            yield f"{place}: {name} is not in the schema"


def explained(*arguments: str) -> Any:
    result = CliRunner().invoke(explain, [*arguments, "-o", "json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.yaml")))
def test_every_situation_is_printed_as_the_schema_says(name: str) -> None:
    found = explained("pod/train", "-n", "team", "-f", str(FOLDER / f"{name}.yaml"))
    assert list(faults(found, SCHEMA)) == []
    assert found["pending"]


@pytest.mark.parametrize("example", ["training", "seeds/000-01-gpu-numa-alignment.yaml"])
def test_examples_are_printed_as_the_schema_says(example: str) -> None:
    found = explained("-f", str(ROOT / "examples" / example), "--profile", "dgx-h100")
    assert list(faults(found, SCHEMA)) == []


def test_the_checker_finds_faults() -> None:
    good = explained("pod/train", "-n", "team", "-f", str(FOLDER / "int-as-string.yaml"))
    for place, value in (
        (("pending", 0, "cause"), 1),
        (("pending", 0, "cause"), "x" * 161),
        (("pending", 0, "other"), ""),
        (("pending", 0, "fixes", 0, "kind"), "wish"),
        (("pending", 0, "verdicts", 0, "diagnosis", "trials"), "many"),
        (("pending", 0, "fixes", 0, "text"), REMOVED),
    ):
        assert len(list(faults(edited_tree(good, [Edit(place, value)]), SCHEMA))) == 1


PROMISED = {
    "Explanations": {"placed", "pending"},
    "Answer": {
        *("title", "cause", "fixes", "pods", "pod", "standsFor", "stoppedBy", "facts"),
        *("verdicts", "companion", "message", "written"),
    },
    "Fix": {"number", "text", "kind", "rank", "changes", "node"},
    "Change": {"kind", "name", "namespace", "edits", "create"},
    "Edit": {"op", "path", "value"},
    "Verdict": {"nodes", "reasons", "facts", "diagnosis", "isBehind"},
    "Diagnosis": {
        *("node", "message", "nodeOnly", "pools", "requests", "conflict"),
        *("trials", "trialsGivenUp", "endedBy"),
    },
    "Funnel": {
        *("claim", "request", "wanted", "inFleet", "onNode", "ofClass", "selected", "free"),
        *("tolerated", "fitting", "together", "nearest"),
    },
}


def test_fields_that_were_published_stay() -> None:
    for name, fields in PROMISED.items():
        assert fields <= SCHEMA["$defs"][name]["properties"].keys(), name


# --- patches ----------------------------------------------------------------------------------


def patched(tree: Any, operations: list[dict[str, Any]]) -> Any:
    """Return a tree with the operations of a JSON patch, as RFC 6902 defines them."""
    tree = copy.deepcopy(tree)
    for each in operations:
        *way, last = (
            part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]
        )
        inner = tree
        for step in way:
            inner = inner[int(step)] if isinstance(inner, list) else inner[step]
        if isinstance(inner, list):
            position = len(inner) if last == "-" else int(last)
            assert position <= len(inner) - (each["op"] != "add")
            inner[position : position + (each["op"] != "add")] = (
                [] if each["op"] == "remove" else [each["value"]]
            )
        elif each["op"] == "remove":
            del inner[last]
        else:
            assert (last in inner) == (each["op"] == "replace")
            inner[last] = each["value"]
    return tree


TREE = {"a": {"x/y": 1, "l": [1, {"m": 2}]}, "n": {}}
EDITS = st.lists(
    st.sampled_from(
        [
            Edit(("a", "x/y"), 2),
            Edit(("a", "new", "deep", "er"), {"v": 1}),
            Edit(("a", "new", "deep", "other"), 3),
            Edit(("a", "l", 0), 7),
            Edit(("a", "l", 1, "m"), 8),
            Edit(("a", "l", APPEND), {"o": 1}),
            Edit(("n", "list", APPEND), "first"),
            Edit(("n", "tilde~"), True),
        ]
    )
)


@given(edits=EDITS, is_removed=st.booleans())
def test_edits_as_a_json_patch_do_the_same(edits: list[Edit], is_removed: bool) -> None:
    if is_removed:
        edits = [*edits, Edit(("a", "l", 0)), Edit(("a", "x/y"))]
    assert patched(TREE, json_patch(TREE, edits)) == edited_tree(TREE, edits)
