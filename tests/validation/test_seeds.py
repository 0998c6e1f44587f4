"""Every example of the seeds, read and validated, by default and strictly."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api.documents import CORE, KUBERNETES, read
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.validation.manifests import Finding, ManifestValidator, Severity, Verdict
from moorage.validation.strategy import Context

ROOT = Path(__file__).parents[2]
FILES = {path.name: path for path in (ROOT / "examples/seeds").rglob("0*")}
EXPECTED: dict[str, Any] = yaml.safe_load((ROOT / "tests/seeds/expected.yaml").read_text())
OBJECTS = sorted(name for name in EXPECTED if EXPECTED[name]["outcome"] != "text")

NOW = Timestamp(datetime(2026, 1, 1, tzinfo=UTC))

ADMIN_NAMESPACE = b"""
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {resource.kubernetes.io/admin-access: "true"}}
---
"""


def verdicts(name: str, *, strict: bool) -> list[Verdict]:
    data = FILES[name].read_bytes()
    labelled = bool(EXPECTED[name].get("namespaceLabels"))
    if labelled:
        data = ADMIN_NAMESPACE + data
    context = Context(gates=Gates.parse(), now=NOW, extensions=not strict)
    judge = ManifestValidator(context)
    schema = KUBERNETES if strict else CORE
    judged = list(filter(None, map(judge.validate, read(data, source=name, schema=schema))))
    judged += [verdict for _, verdict in judge.remaining()]
    return judged[1:] if labelled else judged


def findings(judged: list[Verdict]) -> list[Finding]:
    return [finding for verdict in judged for finding in verdict.findings]


def expected_errors(wanted: dict[str, Any]) -> set[tuple[str, str]]:
    return {(e["field"], e["type"]) for e in wanted.get("errors", [])}


def is_refused(wanted: dict[str, Any]) -> bool:
    return bool(wanted["outcome"] == "refused")


def test_every_example_has_a_file_and_an_expectation() -> None:
    assert FILES.keys() == EXPECTED.keys()
    assert {int(name.split("-")[1]) for name in FILES} == set(range(1, 42))


@pytest.mark.parametrize("name", OBJECTS)
def test_example_gives_what_is_expected(name: str) -> None:
    wanted = EXPECTED[name]
    judged = verdicts(name, strict=False)
    found = findings(judged)
    errors = {(f.field, f.type) for f in found if f.severity is Severity.ERROR}
    assert errors == expected_errors(wanted)
    assert all(verdict.is_accepted for verdict in judged) is not is_refused(wanted)
    warnings = [f.message for f in found if f.severity is Severity.WARNING]
    assert warnings == wanted.get("warnings", [])


@pytest.mark.parametrize("name", OBJECTS)
def test_example_read_strictly_gives_what_kubernetes_gives(name: str) -> None:
    wanted = EXPECTED[name]["strict"] if "strict" in EXPECTED[name] else EXPECTED[name]
    judged = verdicts(name, strict=True)
    found = findings(judged)
    if "reason" in wanted:
        assert not all(verdict.is_accepted for verdict in judged)
        return
    errors = {(f.field, f.type) for f in found if f.severity is Severity.ERROR}
    assert errors == expected_errors(wanted)
    assert all(verdict.is_accepted for verdict in judged) is not is_refused(wanted)
    if not all(verdict.api_version.startswith("resource.k8s.io/") for verdict in judged):
        return  # Of kinds that others own we keep what we do not know.
    unknown = [f.message for f in found if f.message.startswith("unknown field")]
    assert unknown == [f'unknown field "{name}"' for name in wanted.get("unknownFields", [])]


def test_the_refusal_of_a_hyphen_shows_the_index_form() -> None:
    for finding in findings(verdicts("002-29-includes.yaml", strict=False)):
        assert finding.message.endswith('write ["supported-models"]')


def test_findings_point_at_the_line_they_are_about() -> None:
    name = "002-26-cpu-sockets-slice.yaml"
    lines = FILES[name].read_text().splitlines()
    (capacity, mappings) = findings(verdicts(name, strict=False))[:2]
    assert "cpu.example.com/cpu" in lines[capacity.line - 1]
    assert "nodeAllocatableResourceMappings" in lines[mappings.line - 1]
