"""Webhooks are called over TLS, and decide as Kubernetes documents it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.client import CONFIG_MAPS, MERGE_PATCH, Client, config_map
from tests.apiserver.policies import enforce
from tests.apiserver.webhook_server import Webhook, http_answer, json_patch


@pytest.fixture
def webhook(client: Client, tmp_path: Path) -> Iterator[Webhook]:
    webhook = Webhook(client, tmp_path)
    yield webhook
    webhook.close()


def test_a_webhook_sees_the_whole_request(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration())
    assert client.post(f"{CONFIG_MAPS}?fieldManager=me", config_map()).status == 201
    (asked,) = webhook.asked
    assert webhook.heads[0].startswith(b"POST /check?timeout=10s HTTP/1.1\r\n")
    assert asked["object"]["data"] == {"a": "b"}
    assert asked["object"]["metadata"]["uid"]
    del asked["object"], asked["uid"]
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    assert asked == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "m",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {
            "username": "kubernetes-admin",
            "groups": ["system:masters", "system:authenticated"],
        },
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
        },
    }


def test_updates_and_deletions_have_the_old_object(client: Client, webhook: Webhook) -> None:
    client.post(CONFIG_MAPS, config_map())
    enforce(client, webhook.configuration())
    client.patch(f"{CONFIG_MAPS}/m", {"data": {"a": "c"}}, MERGE_PATCH)
    client.delete(f"{CONFIG_MAPS}/m", {"gracePeriodSeconds": 3})
    update, deletion = webhook.asked
    assert update["object"]["data"] == {"a": "c"}
    assert update["oldObject"]["data"] == {"a": "b"}
    assert update["options"]["kind"] == "PatchOptions"
    assert deletion["operation"] == "DELETE"
    assert deletion["object"] is None
    assert deletion["oldObject"]["data"] == {"a": "c"}
    assert deletion["options"]["gracePeriodSeconds"] == 3


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ({"message": "no", "code": 403, "reason": "Forbidden"}, 403, ": no"),
        ({"message": "no", "code": 200}, 400, ": no"),
        ({"reason": "Because"}, 400, ": Because"),
        (None, 400, " without explanation"),
    ],
)
def test_a_denial_has_the_status_of_the_webhook(
    client: Client, webhook: Webhook, status: Any, code: int, message: str
) -> None:
    enforce(client, webhook.configuration())
    webhook.answer = lambda _: {"allowed": False, "status": status}
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.status == code
    assert answer.message == f'admission webhook "check.example.com" denied the request{message}'
    assert client.get(f"{CONFIG_MAPS}/m").status == 404


def test_warnings_reach_the_client(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration())
    webhook.answer = lambda _: {"allowed": True, "warnings": ["old", "odd"]}
    assert client.post(CONFIG_MAPS, config_map()).warnings == ['299 - "old"', '299 - "odd"']
    assert client.delete(f"{CONFIG_MAPS}/m").warnings == ['299 - "old"', '299 - "odd"']


def test_connections_are_kept(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration())
    for name in ("a", "b", "c"):
        client.post(CONFIG_MAPS, config_map(name))
    assert (len(webhook.asked), webhook.connections) == (3, 1)


def test_match_conditions_spare_the_call(client: Client, webhook: Webhook) -> None:
    condition = {"name": "c", "expression": "object.metadata.name != 'm'"}
    enforce(client, webhook.configuration(matchConditions=[condition]))
    webhook.answer = lambda _: {"allowed": False}
    assert client.post(CONFIG_MAPS, config_map("m")).status == 201
    assert client.post(CONFIG_MAPS, config_map("n")).status == 400
    assert len(webhook.asked) == 1


def test_a_faulty_match_condition_refuses_the_request(client: Client, webhook: Webhook) -> None:
    condition = {"name": "c", "expression": "object.data.x == '1'"}
    enforce(client, webhook.configuration(matchConditions=[condition]))
    assert client.post(CONFIG_MAPS, config_map()).message == (
        "configmaps \"m\" is forbidden: expression 'object.data.x == '1'' resulted in error: no "
        "such key: x"
    )


def test_a_namespace_selector_spares_the_call(client: Client, webhook: Webhook) -> None:
    chosen = {"matchLabels": {"hooked": "yes"}}
    enforce(client, webhook.configuration(namespaceSelector=chosen))
    webhook.answer = lambda _: {"allowed": False}
    assert client.post(CONFIG_MAPS, config_map("m")).status == 201
    labels = {"metadata": {"labels": {"hooked": "yes"}}}
    assert client.patch("/api/v1/namespaces/default", labels, MERGE_PATCH).status == 200
    assert client.post(CONFIG_MAPS, config_map("n")).status == 400
    assert [each["name"] for each in webhook.asked] == ["n"]


def test_an_object_selector_looks_at_the_new_and_the_old_object(
    client: Client, webhook: Webhook
) -> None:
    chosen = {"matchLabels": {"hooked": "yes"}}
    enforce(client, webhook.configuration(objectSelector=chosen))
    labels = [{"other": "yes"}, {"hooked": "yes"}, {"hooked": "no"}]
    client.post(CONFIG_MAPS, config_map())
    for each in labels:
        client.patch(f"{CONFIG_MAPS}/m", {"metadata": {"labels": each}}, MERGE_PATCH)
    client.patch(f"{CONFIG_MAPS}/m", {"data": {"a": "c"}}, MERGE_PATCH)
    asked = [each["object"]["metadata"]["labels"]["hooked"] for each in webhook.asked]
    assert asked == ["yes", "no"]


@pytest.mark.parametrize(("policy", "versions"), [("Equivalent", ["v1beta1"]), ("Exact", [])])
def test_a_match_policy_finds_requests_of_other_versions(
    client: Client, webhook: Webhook, policy: str, versions: list[str]
) -> None:
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["v1beta1"],
        "operations": ["CREATE"],
        "resources": ["resourceclaims"],
    }
    enforce(client, webhook.configuration(rules=[rule], matchPolicy=policy))
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}},
    }
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    assert client.post(claims, claim).status == 201
    assert [each["kind"]["version"] for each in webhook.asked] == versions
    for each in webhook.asked:
        (request,) = each["object"]["spec"]["devices"]["requests"]
        assert (request["deviceClassName"], each["requestKind"]["version"]) == ("x", "v1")


def test_a_dry_run_calls_webhooks_without_side_effects(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration(sideEffects="NoneOnDryRun"))
    assert client.post(f"{CONFIG_MAPS}?dryRun=All", config_map()).status == 201
    assert webhook.asked[0]["dryRun"] is True


# --- what fails -----------------------------------------------------------------------------------

FAILED = 'Internal error occurred: failed calling webhook "check.example.com": '


def call_failed(webhook: Webhook, why: str) -> str:
    return f'{FAILED}failed to call webhook: Post "{webhook.url}?timeout=10s": {why}'


def test_an_unknown_authority_is_not_trusted(
    client: Client, webhook: Webhook, tmp_path: Path
) -> None:
    other = Webhook(client, tmp_path)
    other.close()
    config = {"url": webhook.url, "caBundle": other.ca_bundle}
    enforce(client, webhook.configuration(clientConfig=config))
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.status == 500
    why = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert answer.message == call_failed(webhook, why)
    assert webhook.asked == []


def test_a_webhook_that_is_away_refuses_or_is_ignored(client: Client, webhook: Webhook) -> None:
    webhook.close()
    enforce(client, webhook.configuration())
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.message == call_failed(webhook, "dial tcp: connect: connection refused")
    ignored = webhook.configuration(failurePolicy="Ignore")
    ignored["metadata"] = {"name": "d"}
    client.delete("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/c")
    enforce(client, ignored)
    assert client.post(CONFIG_MAPS, config_map()).status == 201


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:70000/",
        "https://a..b/",
        f"https://{'a' * 70}/",
        "https://x:9" + "9" * 5000,
    ],
)
def test_a_webhook_where_nothing_can_be_is_away(client: Client, webhook: Webhook, url: str) -> None:
    config = {"url": url, "caBundle": webhook.ca_bundle}
    enforce(client, webhook.configuration(clientConfig=config, failurePolicy="Ignore"))
    assert client.post(CONFIG_MAPS, config_map()).status == 201


def test_a_slow_webhook_runs_into_its_timeout(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration(timeoutSeconds=1))
    assert client.service.dynamic is not None
    client.service.dynamic.client.deadline = lambda seconds: asyncio.timeout(seconds / 50)
    webhook.answer = lambda _: asyncio.Event().wait()
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.message.endswith('/check?timeout=1s": context deadline exceeded')


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            http_answer(b"oops", "500 Internal Server Error"),
            'an error on the server ("oops") has prevented the request from succeeding',
        ),
        (http_answer(b"", "404 Not Found"), "the server could not find the requested resource"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n",
            "the server responded with the status code 302 but did not return more information",
        ),
    ],
)
def test_answers_that_are_errors(client: Client, webhook: Webhook, given: bytes, why: str) -> None:
    enforce(client, webhook.configuration())
    webhook.answer = lambda _: given
    assert client.post(CONFIG_MAPS, config_map()).message == call_failed(webhook, why)


@pytest.mark.parametrize(
    ("response", "review", "why"),
    [
        ({"uid": "x"}, {}, 'expected response.uid="{uid}", got "x"'),
        ({}, {"response": None}, "webhook response was absent"),
        (
            {},
            {"kind": "Review"},
            (
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
                "admission.k8s.io/v1, Kind=Review"
            ),
        ),
        ({"patch": "e30="}, {}, "validating webhook may not return response.patch"),
        ({"patchType": "JSONPatch"}, {}, "validating webhook may not return response.patchType"),
    ],
)
def test_answers_that_break_the_rules(
    client: Client, webhook: Webhook, response: Any, review: Any, why: str
) -> None:
    enforce(client, webhook.configuration())
    webhook.answer = lambda _: {"allowed": True, **response}
    webhook.review = review
    message = client.post(CONFIG_MAPS, config_map()).message
    told = why.format(uid=webhook.asked[0]["uid"])
    assert message == f"{FAILED}received invalid webhook response: {told}"


def test_a_huge_answer_is_not_read(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration())
    webhook.answer = lambda _: http_answer(b" " * (8 * 1024 * 1024 + 1))
    assert "the response exceeds 8388608 bytes" in client.post(CONFIG_MAPS, config_map()).message


def test_a_service_that_is_not_there_is_named(client: Client, webhook: Webhook) -> None:
    service = {"name": "hook", "namespace": "default", "path": "/x"}
    enforce(client, webhook.configuration(clientConfig={"service": service}))
    message = client.post(CONFIG_MAPS, config_map()).message
    assert 'Post "https://hook.default.svc:443/x?timeout=10s": services "hook" not found' in message


# --- mutating -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
def test_a_mutating_webhook_that_is_away_refuses_or_is_ignored(
    client: Client, webhook: Webhook, policy: str, status: int
) -> None:
    webhook.close()
    enforce(client, webhook.configuration(kind="Mutating", failurePolicy=policy))
    assert client.post(CONFIG_MAPS, config_map()).status == status


def test_a_patch_changes_the_object(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration(kind="Mutating"))
    webhook.answer = lambda _: json_patch({"op": "add", "path": "/data/new", "value": "1"})
    made = client.post(CONFIG_MAPS, config_map()).json
    assert made["data"] == {"a": "b", "new": "1"}
    assert "uid" not in webhook.asked[0]["object"]["metadata"]
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}


def test_later_webhooks_see_the_patches_of_earlier_ones(client: Client, webhook: Webhook) -> None:
    both = webhook.configuration(kind="Mutating")
    both["webhooks"].append({**both["webhooks"][0], "name": "next.example.com"})
    enforce(client, both)
    webhook.answer = lambda asked: json_patch(
        {"op": "add", "path": f"/data/n{len(asked['object']['data'])}", "value": "x"}
    )
    assert client.post(CONFIG_MAPS, config_map()).json["data"] == {"a": "b", "n1": "x", "n2": "x"}


@pytest.mark.parametrize(("policy", "calls"), [("Never", 2), ("IfNeeded", 3)])
def test_a_webhook_is_called_again_if_needed(
    client: Client, webhook: Webhook, policy: str, calls: int
) -> None:
    both = webhook.configuration(kind="Mutating", reinvocationPolicy=policy)
    second = {**both["webhooks"][0], "name": "next.example.com", "reinvocationPolicy": "Never"}
    both["webhooks"].append(second)
    enforce(client, both)

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        if len(webhook.asked) == 2:
            return json_patch({"op": "add", "path": "/data/late", "value": "x"})
        return {"allowed": True}

    webhook.answer = answer
    client.post(CONFIG_MAPS, config_map())
    assert len(webhook.asked) == calls
    assert "late" in webhook.asked[-1]["object"]["data"] or calls == 2


def test_a_patch_that_does_not_apply_is_a_fault_of_the_server(
    client: Client, webhook: Webhook
) -> None:
    enforce(client, webhook.configuration(kind="Mutating"))
    webhook.answer = lambda _: json_patch({"op": "remove", "path": "/data/zz"})
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.status == 500
    assert "Unable to remove nonexistent key: zz" in answer.message


def test_what_a_webhook_makes_is_validated(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration(kind="Mutating"))
    bad = {"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}
    webhook.answer = lambda _: json_patch(bad)
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.status == 422
    assert "metadata.labels" in answer.message


def test_other_requests_go_on_while_a_webhook_waits(client: Client, webhook: Webhook) -> None:
    enforce(client, webhook.configuration())

    async def both() -> tuple[bool, int]:
        asked, may_answer = asyncio.Event(), asyncio.Event()

        async def slow() -> dict[str, Any]:
            asked.set()
            await may_answer.wait()
            return {"allowed": True}

        webhook.answer = lambda _: slow()
        waiting = asyncio.create_task(_status(client, "POST", CONFIG_MAPS, config_map()))
        await asked.wait()
        other = await _status(client, "GET", CONFIG_MAPS, None)
        is_waiting = not waiting.done()
        may_answer.set()
        assert await waiting == 201
        return is_waiting, other

    assert client.run(both()) == (True, 200)


async def _status(client: Client, method: str, url: str, body: Any) -> int:
    import json

    from tests.apiserver.client import scope_of

    messages: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}

    async def send(message: Any) -> None:
        messages.append(message)

    await client.app(scope_of(method, url, {}), receive, send)
    return int(messages[0]["status"])
