"""The JSON Schemas of all kinds accept what an API server accepts, and refuse wrong types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from moorage.api.documents import read
from moorage.api.documents.document import expand_lists
from moorage.api.gates import Gates
from moorage.api.kinds import Kind
from moorage.api.timestamp import Timestamp
from moorage.apiserver.openapi.json_schemas import (
    json_schema,
    schema_kinds,
    schema_name,
    schema_of_all,
)
from moorage.validation.manifests import ManifestValidator
from moorage.validation.strategy import Context
from tests.corpus import corpus

NOW = Timestamp(datetime(2026, 1, 1, tzinfo=UTC))
EXAMPLES = Path(__file__).parents[3] / "examples"
KINDS = {(kind.api_version, kind.name): kind for kind in schema_kinds()}
Validator = Callable[[Any], Any]
Wrong = fastjsonschema.JsonSchemaValueException


@cache
def validator(kind: Kind, *, strict: bool) -> Validator:
    compiled: Validator = fastjsonschema.compile(json_schema(kind, strict=strict))
    return compiled


def error(tree: Any, *, strict: bool = True) -> Wrong | None:
    """Return what is wrong with an object by the schema of its kind."""
    try:
        validator(KINDS[tree["apiVersion"], tree["kind"]], strict=strict)(tree)
    except Wrong as wrong:
        return wrong
    return None


def claim(**exactly: Any) -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", **exactly}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "creationTimestamp": None},
        "spec": {"devices": {"requests": requests}},
        "status": {},
    }


# --- objects -----------------------------------------------------------------------------------


def recorded() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the objects that Kubernetes was asked to store, with its answers."""
    with corpus("validation", "public.jsonl").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            answer = row["expect"]
            key = (row["apiVersion"], row["kind"])
            tree = row["object"]
            if key not in KINDS or not isinstance(tree, dict) or "gate_error" in answer:
                continue
            tree = {"apiVersion": key[0], "kind": key[1], **tree}
            if (tree["apiVersion"], tree["kind"]) == key:
                yield tree, answer


def is_stricter_in_kubernetes(wrong: Wrong) -> bool:
    """Whether Kubernetes' own OpenAPI refuses the value, although its server takes it.

    It requires a few fields whose absence the server takes as zero, and does not allow "" for the
    default; and it has no fields that are dropped unread while their feature gate is off.
    """
    return wrong.rule in ("required", "enum") or wrong.value is None


def test_objects_that_kubernetes_accepts_are_valid() -> None:
    count = 0
    refused: list[Wrong] = []
    for tree, answer in recorded():
        is_accepted = not (
            answer.get("decode_error") or answer.get("request_error") or answer["errors"]
        )
        if not is_accepted or answer.get("strict_warnings"):
            continue
        count += 1
        refused += filter(None, (error(tree, strict=strict) for strict in (True, False)))
    assert count > 1000
    assert [str(wrong) for wrong in refused if not is_stricter_in_kubernetes(wrong)] == []
    assert len(refused) / 2 < 0.025 * count


def test_objects_that_kubernetes_cannot_decode_are_not_valid() -> None:
    undecodable = [tree for tree, answer in recorded() if answer.get("decode_error")]
    valid = [tree for tree in undecodable if error(tree) is None]
    assert len(undecodable) > 300
    # JSON Schema takes 1.0 for an integer, Go does not.
    assert all(".0" in json.dumps(tree) for tree in valid)
    assert len(valid) < 10


def test_unknown_fields_are_wrong_in_strict_schemas() -> None:
    warned = [tree for tree, answer in recorded() if answer.get("strict_warnings")]
    assert len(warned) > 50
    assert all(error(tree) is not None for tree in warned)


def test_manifests_that_are_valid_in_strict_mode_are_valid_here() -> None:
    """Those of the examples; what is written as in a KEP is not."""
    context = Context(gates=Gates.parse(""), now=NOW, extensions=False)
    count = 0
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for document in read(path.read_bytes(), source=str(path)):
            for each in expand_lists(document):
                verdict = ManifestValidator(context, strict=True).validate(each)
                if verdict is None or verdict.findings:
                    continue
                if (verdict.api_version, verdict.kind) not in KINDS:
                    continue
                count += 1
                tree = json.loads(json.dumps(each.tree, default=float))
                wrong = error(tree)
                if wrong is not None and not is_stricter_in_kubernetes(wrong):
                    pytest.fail(f"{path}:{each.line}: {wrong}")
    assert count > 100


# --- single fields -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("count", "2"),
        ("count", 2**63),
        ("allocationMode", "Some"),
        ("selectors", {"cel": {"expression": "true"}}),
        ("capacity", {"requests": {"memory": "80 Gi"}}),
        ("tolerations", [{"tolerationSeconds": 1.5}]),
        ("adminAccess", "yes"),
    ],
)
def test_a_value_of_the_wrong_type_is_not_valid(field: str, value: Any) -> None:
    assert error(claim()) is None
    for strict in (True, False):
        wrong = error(claim(**{field: value}), strict=strict)
        assert wrong is not None
        assert field in wrong.path


@pytest.mark.parametrize(
    "amount", ["80Gi", "0.5", "-1", "1e3", "1E3", ".5", "100m", 3, 2.5, "12E", "5Ei"]
)
def test_quantities_are_text_or_numbers(amount: Any) -> None:
    assert error(claim(capacity={"requests": {"memory": amount}})) is None


def test_only_strict_schemas_know_all_fields() -> None:
    assert error(claim(colour="red"), strict=False) is None
    wrong = error(claim(colour="red"))
    assert wrong is not None
    assert wrong.rule == "additionalProperties"


def test_the_version_and_kind_are_fixed() -> None:
    check = validator(KINDS["resource.k8s.io/v1", "ResourceClaim"], strict=True)
    for field in ("apiVersion", "kind"):
        with pytest.raises(Wrong):
            check({**claim(), field: "other"})
        with pytest.raises(Wrong):
            check({name: value for name, value in claim().items() if name != field})


def test_strict_schemas_have_what_kubernetes_has() -> None:
    extension = ("scheduling.k8s.io/v1alpha2", "PodGroup")
    strict = {(kind.api_version, kind.name) for kind in schema_kinds(strict=True)}
    assert extension in KINDS
    assert extension not in strict
    rule = KINDS["resource.k8s.io/v1beta2", "DeviceTaintRule"]
    name = "io.k8s.api.resource.v1beta2.DeviceTaintSelector"
    fields = [
        json_schema(rule, strict=each)["definitions"][name]["properties"].keys()
        for each in (False, True)
    ]
    assert fields[0] - fields[1] == {"deviceClassName", "selectors"}


def test_descriptions_are_those_of_the_api_with_their_gates() -> None:
    tree = json_schema(KINDS["resource.k8s.io/v1", "ResourceClaim"])
    request = tree["definitions"]["io.k8s.api.resource.v1.ExactDeviceRequest"]["properties"]
    assert request["adminAccess"]["description"].endswith("Feature gate: DRAAdminAccess.")
    lacking = [
        f"{name}.{field}"
        for name, each in tree["definitions"].items()
        for field, inner in each.get("properties", {}).items()
        if not inner.get("description")
    ]
    assert lacking == []


# --- the files ---------------------------------------------------------------------------------


def test_the_schema_of_all_kinds_accepts_each() -> None:
    kinds = [KINDS["resource.k8s.io/v1", "ResourceClaim"], KINDS["v1", "Namespace"]]
    check = fastjsonschema.compile(schema_of_all(kinds, strict=True))
    check(claim())
    check({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for wrong in (claim(count="2"), {"apiVersion": "v1", "kind": "Node"}, {}):
        with pytest.raises(Wrong):
            check(wrong)


def test_names_are_those_that_tools_expect() -> None:
    names = {schema_name(kind) for kind in KINDS.values()}
    assert {"pod-v1", "deployment-apps-v1", "resourceclaim-resource-v1beta1"} <= names
    assert len(names) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=schema_name)
def test_every_schema_is_whole_and_refers_to_itself_only(kind: Kind) -> None:
    for strict in (True, False):
        text = json.dumps(json_schema(kind, strict=strict))
        assert "x-kubernetes" not in text
        assert "#/components" not in text
        tree = json.loads(text)
        targets = {part.partition('"')[0] for part in text.split('"#/definitions/')[1:]}
        assert targets == tree.get("definitions", {}).keys()
