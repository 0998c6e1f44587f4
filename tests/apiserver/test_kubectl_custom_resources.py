"""kubectl with custom resources: define, apply, get, explain, patch, scale, delete."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.programs import NO_KUBECTL, find_kubectls
from tests.apiserver.test_kubectl_server import Kubectl, running

KUBECTLS = find_kubectls()

pytestmark = pytest.mark.skipif(not KUBECTLS, reason=NO_KUBECTL)

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    schema:
      openAPIV3Schema:
        type: object
        description: A job that comes again and again.
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: self.replicas <= self.most, message: too many replicas}
            properties:
              cronSpec: {type: string, description: When it comes., pattern: '^[0-9* ]+$'}
              replicas: {type: integer, default: 1, minimum: 0}
              most: {type: integer, default: 5}
          status: {type: object, properties: {replicas: {type: integer}}}
"""
OBJECT = """
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: mine}
spec: {cronSpec: '* * * * 5'}
"""


@pytest.fixture(params=list(KUBECTLS.values()), ids=list(KUBECTLS))
def kubectl(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    with running(tmp_path_factory.mktemp("server")) as kubeconfig:
        folder = tmp_path_factory.mktemp("kubectl")
        (folder / "kubeconfig").write_text(kubeconfig)
        yield Kubectl(request.param, folder)


def test_a_custom_resource_from_its_definition_to_its_end(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=DEFINITION)
    kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com")
    assert "crontabs" in kubectl("api-resources", "--api-group=stable.example.com")

    assert "crontab.stable.example.com/mine created" in kubectl("apply", "-f", "-", text=OBJECT)
    header, row = kubectl("get", "ct").splitlines()
    assert header.split() == ["NAME", "SPEC", "REPLICAS"]
    assert row.split()[-1] == "1"
    assert "crontab.stable.example.com/mine" in kubectl("get", "all", "-o", "name")
    explained = kubectl("explain", "crontab.spec.cronSpec")
    assert "When it comes." in explained

    kubectl("scale", "ct/mine", "--replicas=3")
    assert kubectl.json("get", "ct", "mine")["spec"]["replicas"] == 3
    refused = kubectl.fails("patch", "ct", "mine", "--type=merge", "-p", '{"spec":{"replicas":9}}')
    assert refused == 'The CronTab "mine" is invalid: spec: Invalid value: too many replicas\n'
    unknown = OBJECT.replace("cronSpec:", "cron:")
    assert 'unknown field "spec.cron"' in kubectl.fails("apply", "-f", "-", text=unknown)

    changed = OBJECT.replace("* * * * 5", "1 * * * 5")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=changed)
    assert kubectl.json("get", "ct", "mine")["spec"]["cronSpec"] == "1 * * * 5"
    status = '{"status":{"replicas":2}}'
    kubectl("patch", "ct", "mine", "--subresource=status", "--type=merge", "-p", status)
    assert kubectl.json("get", "ct", "mine")["status"] == {"replicas": 2}
    kubectl("delete", "crd", "crontabs.stable.example.com")
    assert "could not find the requested resource" in kubectl.fails("get", "ct")
