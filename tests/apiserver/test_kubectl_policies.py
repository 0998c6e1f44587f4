"""kubectl meets a policy as driver charts have it: a driver writes the slices of its node only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apiserver.programs import NO_KUBECTL, find_kubectl
from tests.apiserver.test_kubectl_admission import kubectl
from tests.apiserver.test_secure_server import Running, running

pytestmark = pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own-slices}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [resource.k8s.io], apiVersions: [v1beta1], operations: ["*"],
       resources: [resourceslices]}
  matchConditions:
  - {name: driver, expression: "request.userInfo.username == 'system:serviceaccount:drivers:gpu'"}
  variables:
  - name: mine
    expression: request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')
  - name: its
    expression: >-
      (request.operation == 'DELETE' ? oldObject : object).spec.?nodeName.orValue('')
  validations:
  - {expression: "variables.mine != ''", message: no node association found}
  - expression: variables.mine == variables.its
    messageExpression: >-
      'a driver on ' + variables.mine + ' may not write slices of ' + variables.its
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: own-slices}
spec: {policyName: own-slices, validationActions: [Deny]}
"""

WORLD = """
apiVersion: v1
kind: Namespace
metadata: {name: drivers}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: gpu, namespace: drivers}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gpu}
rules: [{apiGroups: [resource.k8s.io], resources: [resourceslices], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gpu}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpu}
subjects: [{kind: ServiceAccount, name: gpu, namespace: drivers}]
---
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: plugin, namespace: drivers}
spec:
  serviceAccountName: gpu
  nodeName: n1
  containers: [{name: c, image: i}]
"""


def slice_of(node: str) -> str:
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: slice-{node}}}
spec:
  driver: gpu.example.com
  nodeName: {node}
  pool: {{name: {node}, generation: 1, resourceSliceCount: 1}}
  devices: []
"""


async def apply(server: Running, text: str, *, token: str = "") -> str:
    path = server.folder / "applied.yaml"
    path.write_text(text)
    return await kubectl(server, "create", "-f", str(path), token=token)


async def drivers_write_their_slices(
    server: Running, policy: str, unbound: str, other: str
) -> None:
    """Check that a driver can write the slices of its own node, and no others."""
    assert "rror" not in await apply(server, policy)
    assert "rror" not in await apply(server, WORLD)
    token = ("create", "token", "gpu", "-n", "drivers")
    loose = (await kubectl(server, *token)).strip()
    bound = ("--bound-object-kind=Pod", "--bound-object-name=plugin")
    mine = (await kubectl(server, *token, *bound)).strip()
    assert unbound in await apply(server, slice_of("n1"), token=loose)
    assert other in await apply(server, slice_of("n2"), token=mine)
    assert "created" in await apply(server, slice_of("n1"), token=mine)
    assert "created" in await apply(server, slice_of("n2"))
    told = await kubectl(server, "delete", "resourceslice", "slice-n2", token=mine)
    assert other in told
    told = await kubectl(server, "delete", "resourceslice", "slice-n1", token=mine)
    assert "deleted" in told


def test_a_driver_writes_the_slices_of_its_node_only(tmp_path: Path) -> None:
    async def scenario(server: Running) -> None:
        denied = "ValidatingAdmissionPolicy 'own-slices' with binding 'own-slices' denied request: "
        await drivers_write_their_slices(
            server,
            POLICY,
            f"{denied}no node association found",
            f"{denied}a driver on n1 may not write slices of n2",
        )
        told = await kubectl(
            server, "get", "validatingadmissionpolicies,validatingadmissionpolicybindings"
        )
        assert "own-slices" in told
        told = await kubectl(server, "explain", "validatingadmissionpolicy.spec.validations")
        assert "messageExpression" in told

    running(tmp_path, scenario)
