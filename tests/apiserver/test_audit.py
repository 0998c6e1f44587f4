"""The audit log records requests at the policy's level, and requests never wait for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from moorage.api.timestamp import Timestamp
from moorage.apiserver.audit import (
    DEFAULT_POLICY,
    AuditLog,
    Auditor,
    AuditPolicy,
    AuditPolicyError,
    Rotation,
    read_policy,
)
from moorage.apiserver.audit import auditor as log_module
from moorage.apiserver.audit.event import AuditBody, AuditNote, line_of
from moorage.apiserver.audit.policy import AuditLevel, decide
from moorage.apiserver.auth.access import RequestAttributes
from moorage.apiserver.auth.users import User
from tests.apiserver.client import CLASSES, CONFIG_MAPS, Client, config_map, device_class

NOW = Timestamp.parse("2026-11-15T12:00:00Z")
ANN = User("ann", ("dev",))


def policy(*rules: str, more: str = "") -> AuditPolicy:
    text = "\n".join(f"- {rule}" for rule in rules)
    data = f"apiVersion: audit.k8s.io/v1\nkind: Policy\n{more}\nrules:\n{text}\n"
    return read_policy(data.encode(), "policy.yaml")


EVERYTHING = policy("{level: RequestResponse}")


class Notes:
    """A log that keeps lines."""

    def __init__(self) -> None:
        self.written = self.lost = 0
        self.lines: list[Any] = []

    def put(self, note: AuditNote) -> None:
        line = line_of(note)
        assert line.count(b"\n") == 1
        self.lines.append(json.loads(line))

    @property
    def stages(self) -> list[tuple[str, str]]:
        return [(line["verb"], line["stage"]) for line in self.lines]


class Audited:
    def __init__(self, folder: Path, audited: AuditPolicy, **options: Any) -> None:
        self.notes = Notes()
        numbers = iter(range(1000))
        auditor = Auditor(audited, self.notes, lambda: NOW, lambda: f"id-{next(numbers)}")
        self.client = Client(folder, audit=auditor, **options)


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Audited]:
    audited = Audited(tmp_path, EVERYTHING)
    yield audited
    audited.client.close()


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[Audited]:
    audited = Audited(tmp_path, DEFAULT_POLICY, guarded=True)
    yield audited
    audited.client.close()


# --- lines --------------------------------------------------------------------------------------


def test_a_request_leaves_a_line_when_it_comes_and_one_when_it_is_answered(
    everything: Audited,
) -> None:
    reply = everything.client.post(f"{CLASSES}?x=1", device_class(), user_agent="me/1")
    assert dict(reply.headers)["audit-id"] == "id-0"
    received, complete = everything.notes.lines
    assert received["stage"] == "RequestReceived"
    assert "requestObject" not in received
    sent, answered = complete.pop("requestObject"), complete.pop("responseObject")
    assert sent["metadata"] == {"name": "gpu"}
    assert answered["metadata"]["uid"]
    assert complete == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": "id-0",
        "stage": "ResponseComplete",
        "requestURI": f"{CLASSES}?x=1",
        "verb": "create",
        "user": {
            "username": "kubernetes-admin",
            "groups": ["system:masters", "system:authenticated"],
        },
        "userAgent": "me/1",
        "objectRef": {
            "resource": "deviceclasses",
            "name": "gpu",
            "apiGroup": "resource.k8s.io",
            "apiVersion": "v1",
        },
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": "2026-11-15T12:00:00.000000Z",
        "stageTimestamp": "2026-11-15T12:00:00.000000Z",
        "annotations": {
            "authorization.k8s.io/decision": "allow",
            "authorization.k8s.io/reason": "",
        },
    }


def test_metadata_has_no_bodies_but_names_and_errors(metadata: Audited) -> None:
    client = metadata.client
    headers = {"authorization": "Bearer secret"}
    client.post(CONFIG_MAPS, config_map("one"), **headers)
    client.post(CONFIG_MAPS, config_map("one"), **headers)
    created, refused = metadata.notes.lines
    assert created["objectRef"]["name"] == "one"
    assert "requestObject" not in created
    assert refused["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "one" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "one", "kind": "configmaps"},
        "code": 409,
    }
    assert "responseObject" not in refused


def test_who_is_not_known_or_may_not_is_noted(metadata: Audited) -> None:
    metadata.client.get(CLASSES, authorization="Bearer wrong")
    metadata.client.get(CLASSES)
    unknown, forbidden = metadata.notes.lines
    assert (unknown["user"], unknown["responseStatus"]["code"]) == ({}, 401)
    assert forbidden["user"]["username"] == "system:anonymous"
    assert forbidden["responseStatus"]["code"] == 403
    assert forbidden["annotations"]["authorization.k8s.io/decision"] == "forbid"


def test_a_watch_is_noted_when_it_begins_and_when_it_ends(everything: Audited) -> None:
    watch = everything.client.watch(f"{CLASSES}?watch=1")
    assert everything.notes.stages == [("watch", "RequestReceived"), ("watch", "ResponseStarted")]
    watch.close()
    assert everything.notes.stages[2:] == [("watch", "ResponseComplete")]


def test_who_acts_as_another_is_noted_with_both() -> None:
    acting = User("bob", ("one",), actor=ANN)
    line = json.loads(line_of(_note(user=acting)))
    assert line["user"]["username"] == "ann"
    assert line["impersonatedUser"] == {"username": "bob", "groups": ["one"]}


def test_large_bodies_and_those_that_cannot_be_read_are_left_out() -> None:
    json_type = "application/json"
    large = AuditBody(b'"' + b"x" * 2_000_000 + b'"', json_type)
    line = json.loads(line_of(_note(request=large)))
    assert "requestObject" not in line
    assert line["annotations"] == {"audit.k8s.io/truncated": "true"}
    for data in (b"{", b"\xff\xfe", b"[" * 100_000, b"NaN"):
        assert "requestObject" not in json.loads(line_of(_note(request=AuditBody(data, json_type))))


def test_bodies_in_yaml_and_protobuf_are_noted_as_json(everything: Audited) -> None:
    everything.client.post(
        CONFIG_MAPS,
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n",
        content_type="application/yaml",
        accept="application/vnd.kubernetes.protobuf",
    )
    line = everything.notes.lines[-1]
    assert line["requestObject"]["metadata"]["name"] == "y"
    assert line["responseObject"]["kind"] == "ConfigMap"


def test_managed_fields_are_left_out_if_that_is_wanted(tmp_path: Path) -> None:
    audited = Audited(tmp_path, policy("{level: RequestResponse, omitManagedFields: true}"))
    audited.client.post(CONFIG_MAPS, config_map("one"))
    audited.client.get(CONFIG_MAPS)
    audited.client.close()
    for line in audited.notes.lines:
        assert "managedFields" not in json.dumps(line)


def test_secrets_are_noted_only_by_a_rule_that_names_them(tmp_path: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"password": "hunter2"},
    }
    path = "/api/v1/namespaces/default/secrets"
    audited = Audited(tmp_path, EVERYTHING)
    audited.client.post(path, secret)
    audited.client.get(f"{path}/s")
    audited.client.close()
    assert "hunter2" not in json.dumps(audited.notes.lines)
    assert {line["level"] for line in audited.notes.lines} == {"Metadata"}
    named = policy("{level: Request, resources: [{group: '', resources: [secrets]}]}")
    assert (
        decide(named, ANN, RequestAttributes("get", resource="secrets")).level is AuditLevel.REQUEST
    )


# --- policies -----------------------------------------------------------------------------------

PODS = RequestAttributes("get", "", "v1", "pods", "", "team", "one")
LOG = PODS._replace(subresource="log")
HEALTH = RequestAttributes("get", path="/healthz/ping")


@pytest.mark.parametrize(
    ("rule", "matching", "others"),
    [
        ("users: [ann]", [PODS, HEALTH], []),
        ("users: [ben]", [], [PODS, HEALTH]),
        ("userGroups: [ops, dev]", [PODS], []),
        ("verbs: [list]", [], [PODS]),
        ("namespaces: [team]", [PODS], [HEALTH, PODS._replace(namespace="other")]),
        ("namespaces: ['']", [PODS._replace(namespace="")], [PODS, HEALTH]),
        ("resources: [{group: '', resources: [pods]}]", [PODS], [LOG, HEALTH]),
        ("resources: [{group: '', resources: [pods/log]}]", [LOG], [PODS]),
        ("resources: [{group: '', resources: ['pods/*']}]", [LOG], []),
        ("resources: [{group: '', resources: ['*/log']}]", [LOG], [PODS]),
        ("resources: [{group: ''}]", [PODS, LOG], [PODS._replace(group="apps")]),
        (
            "resources: [{group: '', resources: [pods], resourceNames: [one]}]",
            [PODS],
            [PODS._replace(name="two")],
        ),
        ("nonResourceURLs: ['/healthz*']", [HEALTH], [PODS]),
        ("nonResourceURLs: [/healthz]", [], [HEALTH]),
    ],
)
def test_what_a_rule_matches(
    rule: str, matching: list[RequestAttributes], others: list[RequestAttributes]
) -> None:
    rules = policy(f"{{level: Metadata, {rule}}}")
    assert all(decide(rules, ANN, asked).level is AuditLevel.METADATA for asked in matching)
    assert all(decide(rules, ANN, asked).level is AuditLevel.NONE for asked in others)


def test_the_first_rule_that_matches_decides() -> None:
    rules = policy("{level: None, users: [ann]}", "{level: Request, omitStages: [ResponseStarted]}")
    assert decide(rules, ANN, PODS).level is AuditLevel.NONE
    verdict = decide(rules, User("ben"), PODS)
    assert verdict.level is AuditLevel.REQUEST
    assert verdict.omitted_stages == {"ResponseStarted"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "must hold one Policy"),
        ("a: [", "policy.yaml"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1\n", "missing required field `rules`"),
        ("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: []\n", "rules: there is none"),
        ("kind: Event\napiVersion: audit.k8s.io/v1\nrules: []\n", "must be a audit.k8s.io/v1"),
        ("{level: All}", "rules[0].level: 'All' is none of None, Metadata"),
        ("{level: None, user: [x]}", "unknown field `user` - at `$.rules[0]`"),
        ("{level: None, omitStages: [End]}", "rules[0].omitStages: 'End' is none of"),
        ("{level: None, nonResourceURLs: [x]}", "rules[0].nonResourceURLs: 'x'"),
        ("{level: None, nonResourceURLs: [/x], namespaces: [a]}", "not together with resources"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_its_place(text: str, fault: str) -> None:
    whole = text
    if text.startswith("{"):
        whole = f"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {text}\n"
    with pytest.raises(AuditPolicyError) as refused:
        read_policy(whole.encode(), "policy.yaml")
    assert fault in str(refused.value)


# --- the file -----------------------------------------------------------------------------------


def _note(**given: Any) -> AuditNote:
    known: dict[str, Any] = {
        "level": AuditLevel.REQUEST_RESPONSE,
        "stage": "ResponseComplete",
        "audit_id": "1",
        "uri": "/",
        "asked": PODS,
        "user": ANN,
        "received": NOW,
        "noted": NOW,
    }
    return AuditNote(**(known | given))


def test_lines_are_appended_to_a_file_of_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for number in range(2):
        log = AuditLog(str(path))
        log.put(_note(audit_id=str(number)))
        log.close()
    assert [json.loads(line)["auditID"] for line in path.read_text().splitlines()] == ["0", "1"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_full_is_turned_over_and_old_ones_go(tmp_path: Path) -> None:
    clock = iter(datetime(2026, 11, 15, tzinfo=UTC) + timedelta(hours=n) for n in range(1000))
    log = AuditLog(str(tmp_path / "audit.log"), Rotation(1, backups_max=2), lambda: next(clock))
    body = AuditBody(json.dumps("x" * 700_000).encode(), "application/json")
    for number in range(6):
        log.put(_note(audit_id=str(number), response=body, code=200))
    log.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 3
    assert names[-1] == "audit.log"
    assert names[0].startswith("audit-2026-11-15T")
    kept = [json.loads((tmp_path / name).read_text())["auditID"] for name in names]
    assert kept == ["3", "4", "5"]
    assert (log.written, log.lost) == (6, 0)


def test_files_that_are_too_old_go(tmp_path: Path) -> None:
    days = iter(datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=n) for n in range(0, 100, 2))
    log = AuditLog(str(tmp_path / "a.log"), Rotation(1, age_days_max=5), lambda: next(days))
    body = AuditBody(json.dumps("x" * 700_000).encode(), "application/json")
    for _ in range(5):
        log.put(_note(response=body, code=200))
    log.close()
    assert len(list(tmp_path.iterdir())) < 5


def test_a_log_that_cannot_keep_up_loses_lines_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "WAITING_NOTES_MAX", 5)
    released = threading.Event()

    def slow(note: AuditNote) -> bytes:
        released.wait(20)
        return line_of(note)

    monkeypatch.setattr(log_module, "line_of", slow)
    log = AuditLog(str(tmp_path / "audit.log"))
    for _ in range(20):
        log.put(_note())
    assert 14 <= log.lost <= 15
    released.set()
    log.close()
    assert log.written + log.lost == 20


def test_a_disk_that_fails_costs_lines_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: AuditNote) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_module, "line_of", failing)
    log = AuditLog(str(tmp_path / "audit.log"))
    log.put(_note())
    log.close()
    assert (log.written, log.lost) == (0, 1)


def test_a_log_that_could_not_be_turned_over_goes_on_when_the_disk_does(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    file = log_module._Rotating(folder / "audit.log", Rotation(1), lambda: NOW.instant)
    file.write(b"x" * 2**20)
    folder.rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            file.write(b"lost\n")
    (tmp_path / "away").rename(folder)
    (folder / "audit.log").unlink()
    file.write(b"kept\n")
    file.close()
    assert (folder / "audit.log").read_bytes() == b"kept\n"
