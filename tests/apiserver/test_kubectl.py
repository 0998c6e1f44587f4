"""kubectl reads our surfaces, in every version that there is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import AllocationResult, ResourceClaim, ResourceClaimStatus
from moorage.api.timestamp import Timestamp
from tests.apiserver.programs import NO_KUBECTL, find_kubectls
from tests.apiserver.surfaceserver import CLAIMS, SurfaceServer, surface_server

KUBECTLS = find_kubectls()

pytestmark = pytest.mark.skipif(not KUBECTLS, reason=NO_KUBECTL)

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]

CREATED = Timestamp.parse("2026-11-15T11:55:00Z")
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""
REVIEW = """
apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
metadata: {name: one}
spec: {resourceAttributes: {verb: get, resource: pods}}
"""


@pytest.fixture
def server() -> Iterator[SurfaceServer]:
    with surface_server() as running:
        yield running


@pytest.fixture(params=list(KUBECTLS.values()), ids=list(KUBECTLS))
def kubectl(request: pytest.FixtureRequest, server: SurfaceServer, tmp_path: Path) -> Kubectl:
    program: str = request.param

    def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "KUBECONFIG": ""}
        command = [program, "--server", server.url, "--cache-dir", str(tmp_path), *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, input=text, timeout=60
        )

    return run


def test_version(kubectl: Kubectl) -> None:
    done = kubectl("version")
    assert "Server Version: v1.37.0+moorage." in done.stdout


def test_api_resources(kubectl: Kubectl, server: SurfaceServer) -> None:
    done = kubectl("api-resources", "--no-headers", "-o", "wide")
    assert done.returncode == 0
    rows = {row.split()[0]: row.split() for row in done.stdout.splitlines()}
    assert rows["pods"][1:5] == ["po", "v1", "true", "Pod"]
    assert rows["pods"][-1] == "all"
    assert rows["resourceclaims"][1:4] == ["resource.k8s.io/v1", "true", "ResourceClaim"]
    assert rows["resourcepoolstatusrequests"][3] == "ResourcePoolStatusRequest"
    assert {"GET /api", "GET /apis"} >= {path for path in server.asked if "version" not in path}


def test_api_versions(kubectl: Kubectl) -> None:
    versions = kubectl("api-versions").stdout.split()
    assert {"v1", "resource.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"} <= set(versions)


def test_explain(kubectl: Kubectl) -> None:
    done = kubectl("explain", "resourceclaim.spec.devices.requests.exactly")
    assert done.returncode == 0
    assert "FIELD: exactly <ExactDeviceRequest>" in done.stdout
    assert "deviceClassName\t<string> -required-" in done.stdout
    assert "enum: All, ExactCount" in done.stdout
    assert "no description" not in done.stdout


def test_explain_another_version(kubectl: Kubectl) -> None:
    arguments = ("explain", "resourceslices", "--api-version", "resource.k8s.io/v1beta1")
    done = kubectl(*arguments, "--recursive")
    assert "basic\t<BasicDevice>" in done.stdout


def test_explain_goes_beyond_what_our_structs_declare(kubectl: Kubectl) -> None:
    done = kubectl("explain", "pods.spec.containers.livenessProbe.httpGet")
    assert "port\t<IntOrString> -required-" in done.stdout


def test_explain_of_a_field_that_is_not_there(kubectl: Kubectl) -> None:
    done = kubectl("explain", "resourceclaim.spec.nothing")
    assert done.returncode == 1
    assert 'field "nothing" does not exist' in done.stderr


def test_get_shows_the_server_s_table(kubectl: Kubectl, server: SurfaceServer) -> None:
    metadata = ObjectMeta(name="one", namespace="default", creation_timestamp=CREATED)
    status = ResourceClaimStatus(allocation=AllocationResult())
    server.claims = (ResourceClaim(metadata=metadata, status=status),)
    done = kubectl("get", "resourceclaims")
    assert [row.split() for row in done.stdout.splitlines()] == [
        ["NAME", "STATE", "AGE"],
        ["one", "allocated", "5m"],
    ]


def test_create_leaves_validation_to_the_server(kubectl: Kubectl, server: SurfaceServer) -> None:
    done = kubectl("create", "--validate=strict", "-f", "-", text=CLAIM)
    assert done.returncode == 0, done.stderr
    assert server.asked[-1] == f"POST {CLAIMS}"
    assert server.queries[-1]["fieldValidation"] == ["Strict"]
    assert "GET /openapi/v2" not in server.asked


def test_apply(kubectl: Kubectl, server: SurfaceServer) -> None:
    done = kubectl("apply", "-f", "-", text=CLAIM)
    assert done.returncode == 0, done.stderr
    assert server.asked[-1] == f"POST {CLAIMS}"


def test_apply_on_the_server(kubectl: Kubectl, server: SurfaceServer) -> None:
    done = kubectl("apply", "--server-side", "-f", "-", text=CLAIM)
    assert done.returncode == 0, done.stderr
    assert server.asked[-1] == f"PATCH {CLAIMS}/one"
    assert server.queries[-1]["fieldValidation"] == ["Strict"]


def test_a_dry_run_on_the_server_is_known(kubectl: Kubectl, server: SurfaceServer) -> None:
    done = kubectl("apply", "--dry-run=server", "-f", "-", text=CLAIM)
    assert done.returncode == 0, done.stderr
    assert server.queries[-1]["dryRun"] == ["All"]


def test_reviews_can_be_created(kubectl: Kubectl, server: SurfaceServer) -> None:
    done = kubectl("create", "-f", "-", text=REVIEW)
    assert done.returncode == 0, done.stderr
    assert server.asked[-1].startswith("POST /apis/authorization.k8s.io/v1/")


def test_documents_that_are_known_are_not_sent_again(
    kubectl: Kubectl, server: SurfaceServer
) -> None:
    for _ in range(2):
        assert kubectl("explain", "deviceclass").returncode == 0
    documents = [path for path in server.asked if path.startswith("GET /openapi/v3/")]
    assert documents == ["GET /openapi/v3/apis/resource.k8s.io/v1"]


def test_raw(kubectl: Kubectl) -> None:
    assert '"kind":"APIGroup"' in kubectl("get", "--raw", "/apis/resource.k8s.io").stdout
