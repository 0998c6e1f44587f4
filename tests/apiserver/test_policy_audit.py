"""Policies and webhooks put annotations into the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.client import CONFIG_MAPS, config_map
from tests.apiserver.policies import binding, enforce, policy
from tests.apiserver.test_audit import EVERYTHING, Audited
from tests.apiserver.webhook_server import Webhook, json_patch


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Audited]:
    audited = Audited(tmp_path / "store", EVERYTHING)
    yield audited
    audited.client.close()


def noted_in(audited: Audited) -> dict[str, Any]:
    """Return what policies and webhooks have put into the latest event."""
    found = audited.notes.lines[-1]["annotations"]
    return {key: text for key, text in found.items() if "authorization" not in key}


def test_a_failed_validation_is_audited(audited: Audited) -> None:
    failing = {"expression": "false", "message": "bad"}
    enforce(audited.client, policy("true", failing), binding(validationActions=["Audit"]))
    assert audited.client.post(CONFIG_MAPS, config_map()).status == 201
    (text,) = noted_in(audited).values()
    assert json.loads(text) == [
        {
            "message": "bad",
            "policy": "p",
            "binding": "b",
            "expressionIndex": 1,
            "validationActions": ["Audit"],
        }
    ]
    assert list(noted_in(audited)) == ["validation.policy.admission.k8s.io/validation_failure"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("'name ' + object.metadata.name", {"p/key": "name m"}),
        ("null", {}),
        ("'  '", {}),
    ],
)
def test_audit_annotations(audited: Audited, expression: str, found: dict[str, str]) -> None:
    noted = [{"key": "key", "valueExpression": expression}]
    enforce(audited.client, policy(auditAnnotations=noted), binding())
    assert audited.client.post(CONFIG_MAPS, config_map()).status == 201
    assert noted_in(audited) == found


@pytest.mark.parametrize(("failure", "status"), [("Fail", 422), ("Ignore", 201)])
def test_an_audit_annotation_that_fails(audited: Audited, failure: str, status: int) -> None:
    noted = [{"key": "key", "valueExpression": "string(object.data.x)"}]
    enforce(audited.client, policy(auditAnnotations=noted, failurePolicy=failure), binding())
    assert audited.client.post(CONFIG_MAPS, config_map()).status == status


def test_webhooks_are_audited(audited: Audited, tmp_path: Path) -> None:
    webhook = Webhook(audited.client, tmp_path)
    enforce(audited.client, webhook.configuration(kind="Mutating"))
    added = {"op": "add", "path": "/data/x", "value": "y"}
    webhook.answer = lambda _: {**json_patch(added), "auditAnnotations": {"why": "because"}}
    audited.client.post(CONFIG_MAPS, config_map())
    mutated = {"configuration": "c", "webhook": "check.example.com", "mutated": True}
    found = noted_in(audited)
    assert found.pop("check.example.com/why") == "because"
    (key,) = found
    assert key == "mutation.webhook.admission.k8s.io/round_0_index_0"
    assert json.loads(found[key]) == mutated
    webhook.close()


def test_a_webhook_that_fails_open_is_audited(audited: Audited, tmp_path: Path) -> None:
    webhook = Webhook(audited.client, tmp_path)
    webhook.close()
    enforce(audited.client, webhook.configuration(failurePolicy="Ignore"))
    assert audited.client.post(CONFIG_MAPS, config_map()).status == 201
    key = "failed-open.validating.webhook.admission.k8s.io/round_0_index_0"
    assert noted_in(audited) == {key: "check.example.com"}
