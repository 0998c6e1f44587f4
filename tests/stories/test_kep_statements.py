"""Where Kubernetes 1.37 differs from its KEPs: `docs/reference/keps.md`, statement by statement.

What the stories show already is shown by them; the last tests see that the page names real tests.
"""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.api.schema import api_type
from moorage.cli.main import moor

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "keps.md"

Tree = dict[str, Any]


def validated(tree: Tree, *options: str) -> Result:
    text = yaml.safe_dump(tree)
    return CliRunner().invoke(moor, ["validate", "-q", "-f", "-", *options], input=text)


def deriving(*derived: Tree, constraints: list[Tree] | None = None) -> Tree:
    """Return a claim with derived attributes, each of which a constraint compares."""
    exactly = {"deviceClassName": "gpu.example.com", "derivedAttributes": list(derived)}
    compared = [{"matchAttribute": each["name"]} for each in derived]
    devices = {
        "requests": [{"name": "gpu", "exactly": exactly}],
        "constraints": compared if constraints is None else constraints,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim"},
        "spec": {"devices": devices},
    }


def keys(number: int, expression: str = "1") -> list[Tree]:
    return [{"name": f"example.com/k{n}", "expression": expression} for n in range(number)]


def published(**attributes: Any) -> Tree:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": attributes}],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "slice"},
        "spec": spec,
    }


# --- KEP-6080 -----------------------------------------------------------------------------------


def test_a_request_may_have_32_derived_attributes() -> None:
    assert validated(deriving(*keys(32))).exit_code == 0
    result = validated(deriving(*keys(33), constraints=[]))
    assert "derivedAttributes: Too many: 33: must have at most 32 items" in result.output


def test_derived_attributes_are_an_atomic_list() -> None:
    for owner in ("ExactDeviceRequest", "DeviceSubRequest"):
        fields = {each.name: each for each in api_type(f"resource/v1.{owner}").fields}
        assert fields["derivedAttributes"].markers.list_type == "atomic"


def test_a_bare_name_gets_a_domain_or_is_refused() -> None:
    bare = deriving({"name": "shared-numa", "expression": "1"})
    result = validated(bare)
    assert result.exit_code == 0
    assert '"shared-numa" is stored as "derived/shared_numa"' in result.output
    refused = validated(bare, "--strict")
    assert refused.exit_code == 1
    assert "must be a domain and a name separated by a slash" in refused.output


def test_a_derived_attribute_must_be_referenced() -> None:
    result = validated(deriving(*keys(1), constraints=[]))
    assert result.exit_code == 1
    assert "must be referenced by at least one matchAttribute or distinctAttribute" in result.output


def test_all_derived_expressions_of_a_claim_share_a_limit() -> None:
    costly = "true"
    for variable in "abcd":
        costly = f"[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all({variable}, {costly})"
    assert validated(deriving(*keys(1, costly))).exit_code == 0
    result = validated(deriving(*keys(32, costly)))
    assert result.exit_code == 1
    assert "total cost of derived attribute CEL expressions in the claim" in result.output


# --- KEP-5491 -----------------------------------------------------------------------------------


def test_a_device_has_at_most_48_values() -> None:
    assert validated(published(numbers={"ints": list(range(48))})).exit_code == 0
    for more in ({}, {"one": {"int": 1}, "two": {"int": 2}}):
        full = {"ints": list(range(47 if more else 49))}
        result = validated(published(numbers=full, **more))
        assert "49: the total number of attribute values must not exceed 48" in result.output


def test_strings_in_lists_have_at_most_64_bytes() -> None:
    assert validated(published(names={"strings": ["ä" * 32]})).exit_code == 0
    result = validated(published(names={"strings": ["ä" * 32 + "b"]}))
    assert "Too long: may not be more than 64 bytes" in result.output


def test_comparing_a_list_with_a_number_is_false(tmp_path: Path) -> None:
    file = tmp_path / "slice.yaml"
    file.write_text(yaml.safe_dump(published(numbers={"ints": [1]})), encoding="utf-8")
    number = "device.attributes['gpu.example.com'].numbers"
    assert matching(file, f"{number} == 1") == 0
    assert matching(file, f"{number}.includes(1)") == 1


def matching(file: Path, expression: str) -> int:
    """Return how many devices an expression selects; it must give no error."""
    result = CliRunner().invoke(moor, ["cel", expression, "-f", str(file), "-o", "json"])
    assert result.exit_code in (0, 1), result.output
    told = json.loads(result.stdout)
    outcomes = [each["outcome"] for each in told["devices"]]
    assert set(outcomes) <= {"match", "no match"}
    return outcomes.count("match")


# --- the concept page ---------------------------------------------------------------------------


def test_taint_rules_are_on_in_v1_and_v1beta2() -> None:
    for version in ("v1", "v1beta2"):
        rule = {
            "apiVersion": f"resource.k8s.io/{version}",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "rule"},
            "spec": {
                "deviceSelector": {"driver": "gpu.example.com"},
                "taint": {"key": "gpu.example.com/broken", "effect": "NoExecute"},
            },
        }
        result = validated(rule, "--strict", "--gates-preset", "kubernetes-1.37")
        assert (result.exit_code, result.output) == (0, "")


def test_a_hyphen_in_cel_is_a_subtraction_and_the_error_says_so() -> None:
    models = "device.attributes['dra.example.com'].supported-models.includes('model-a')"
    refused = validated(deriving({"name": "example.com/has-model", "expression": models}))
    assert refused.exit_code == 1
    assert '["supported-models"]' in refused.output


# --- the page -----------------------------------------------------------------------------------

SEEDS = ("KEP-6080", "KEP-5491", "Concept page", "KEP-6072", "KEP-5004")
TEST = re.compile(r"`([\w/]+)::(\w+)`")


def rows(heading: str) -> list[str]:
    """Return the statements below a heading of the page."""
    (section,) = re.findall(rf"^## {heading}\b.*?(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    return [line for line in section.splitlines() if line.startswith("|")][2:]


@cache
def functions_of(module: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / f"{module}.py").read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, functions))


@pytest.mark.parametrize("heading", SEEDS)
def test_every_statement_of_the_page_is_shown_by_tests_that_exist(heading: str) -> None:
    statements = rows(heading)
    assert statements
    for statement in statements:
        named = TEST.findall(statement.rpartition(" | ")[2])
        assert named, statement
        for module, name in named:
            assert name in functions_of(module), f"{module}::{name}"


def test_every_test_of_this_module_is_named_by_the_page() -> None:
    named = {name for module, name in TEST.findall(PAGE.read_text(encoding="utf-8"))}
    own = {name for name in functions_of("stories/test_kep_statements") if name.startswith("test_")}
    assert {name for name in own - named if "_page" not in name} == set()
