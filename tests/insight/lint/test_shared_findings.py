"""Claims that ask alike are judged once, and each gets its findings at its own lines."""

from __future__ import annotations

import pytest

from moorage.insight.lint import RULES, lint
from tests.insight.linting import context_of, objects_of, world_of

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice-1}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: H100}, index: {int: 0}}
  - name: gpu-1
    attributes: {model: {string: H100}, index: {int: 1}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: {kind}
metadata: {{name: claim-{number}, namespace: team-{number}}}
spec:
  {devices}
"""
DEVICES = {
    "wrong value": """devices: {requests: [{name: a, exactly: {deviceClassName: gpu, selectors: [
      {cel: {expression: "device.attributes['gpu.example.com'].model == 'h100'"}}]}}]}""",
    "wrong name": """devices: {requests: [{name: a, exactly: {deviceClassName: gpu, selectors: [
      {cel: {expression: "device.attributes['gpu.example.com'].modell == 'H100'"}}]}}]}""",
    "no class": "devices: {requests: [{name: a, exactly: {deviceClassName: gpus}}]}",
    "constraint": """devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2}}],
      constraints: [{matchAttribute: gpu.example.com/models}]}""",
    "syntax": """devices: {requests: [{name: a, exactly: {deviceClassName: gpu, selectors: [
      {cel: {expression: "device.driver = 'x'"}}]}}]}""",
}
CLAIMS = 20


def claims(devices: str) -> list[str]:
    of_claim = [
        CLAIM.format(kind="ResourceClaim", number=n, devices=devices) for n in range(CLAIMS)
    ]
    inner = f"spec: {{{devices}}}"
    template = CLAIM.format(kind="ResourceClaimTemplate", number=CLAIMS, devices=inner)
    return [*of_claim, template]


@pytest.mark.parametrize("devices", DEVICES.values(), ids=DEVICES)
def test_each_claim_gets_the_findings_that_it_gets_alone(devices: str) -> None:
    context = context_of()
    texts = claims(devices)
    objects = objects_of("---\n".join([SLICE, *texts]), context)
    together = lint(objects, world_of(objects, context))

    assert len(together) > CLAIMS
    for number, subject in enumerate(objects[2:]):
        alone = lint([subject], world_of(objects, context))
        own = [each for each in together if each.name == f"team-{number}/claim-{number}"]
        assert own == alone


@pytest.mark.parametrize("devices", DEVICES.values(), ids=DEVICES)
def test_rules_look_once_at_claims_that_ask_alike(devices: str) -> None:
    context = context_of()
    objects = objects_of("---\n".join([SLICE, *claims(devices)]), context)
    world = world_of(objects, context)
    lint(objects, world)

    asked = {rule_id for rule_id, _ in world.shared_findings}
    assert asked == {rule.id for rule in RULES if rule.is_shared}
    assert len(world.shared_findings) == 2 * len(asked)  # of claims, and of templates
