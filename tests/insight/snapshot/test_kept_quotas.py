"""A quota refuses the same after a snapshot was written, redacted or given other names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.api.codec import encode_json
from moorage.insight.snapshot.archive import write_archive
from moorage.insight.snapshot.completion import complete
from moorage.insight.snapshot.pseudonyms import anonymised
from moorage.insight.snapshot.redaction import redacted
from moorage.insight.snapshot.snapshot import Snapshot, overlay
from tests.insight.snapshot.test_archive import GATES, replayed
from tests.insight.snapshot.test_builder import intake
from tests.insight.snapshot.test_workloads import CONTEXT

DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"
QUOTA = f"""\
apiVersion: v1
kind: ResourceQuota
metadata: {{name: acme-quota, namespace: acme, uid: q, annotations: {{note: s3cr3t}}}}
spec: {{hard: {{{DEVICES}: 1, pods: 5}}}}
status: {{hard: {{{DEVICES}: 1, pods: 5}}, used: {{{DEVICES}: 1, pods: 1}}}}
"""
CLUSTER = f"""\
apiVersion: v1
kind: Namespace
metadata: {{name: acme}}
---
{QUOTA}---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu.example.com}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpus, namespace: acme}}
spec:
  spec:
    devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.example.com}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: train, namespace: acme}}
spec:
  containers: [{{name: main, image: registry.example.com/app}}]
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: gpus}}]
"""


def archived(snapshot: Snapshot) -> Snapshot:
    return replayed(write_archive(snapshot, gates=GATES))


@pytest.mark.parametrize("written", [archived, redacted, anonymised])
def test_it_refuses_as_before(written: Callable[[Snapshot], Snapshot]) -> None:
    before = intake(CLUSTER).snapshot()
    after = written(before)
    (quota,) = after.quotas
    assert (quota.spec, quota.status) == (before.quotas[0].spec, before.quotas[0].status)
    (reason,) = complete(after, CONTEXT).over_quota.values()
    assert f"exceeded quota: {quota.metadata.name}, requested: {DEVICES}=1, used" in reason


def test_its_name_and_notes_are_not_told() -> None:
    found = anonymised(redacted(intake(CLUSTER).snapshot()))
    text = b"".join(map(encode_json, found.objects()))
    assert b"acme" not in text
    assert b"s3cr3t" not in text


def test_a_quota_that_is_raised_in_a_file_allows_more() -> None:
    cluster = intake(CLUSTER).snapshot()
    text = (
        QUOTA.replace(", uid: q", "")
        .partition("status:")[0]
        .replace(f"{DEVICES}: 1", f"{DEVICES}: 2")
    )
    raised, _ = overlay(cluster, intake(text).snapshot())
    assert complete(cluster.with_objects(raised.objects()), CONTEXT).over_quota == {}
