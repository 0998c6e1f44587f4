"""Stateful sets, services, budgets, cron jobs and volume claims, with a real kubectl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.programs import NO_KUBECTL, find_kubectls
from tests.apiserver.test_kubectl_server import Kubectl

KUBECTLS = find_kubectls()
TIMEOUT_S = 150

pytestmark = pytest.mark.skipif(not KUBECTLS, reason=NO_KUBECTL)

MANIFESTS = """
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db}
spec: {minAvailable: 2, selector: {matchLabels: {app: db}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec:
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
      containers:
      - name: main
        image: db
        command: [sleep, "10000"]
        resources: {claims: [{name: gpu}]}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def moor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moorage.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("cluster")
    place = ("--data-dir", str(folder))
    started = moor("up", *place, "--port", "0", "--profile", "dgx-h100", "--detach")
    assert started.returncode == 0, started.stderr
    try:
        home = tmp_path_factory.mktemp("kubectl")
        (home / "kubeconfig").write_text((folder / "kubeconfig").read_text())
        found = Kubectl(list(KUBECTLS.values())[-1], home)
        manifest = Path(home) / "manifests.yaml"
        manifest.write_text(MANIFESTS)
        found("apply", "-f", str(manifest))
        found("rollout", "status", "statefulset/db", "--timeout=60s")
        yield found
    finally:
        moor("down", *place)
        moor("reset", *place, "--yes")


def read(kubectl: Kubectl, *arguments: str) -> Any:
    return json.loads(kubectl("get", *arguments, "-o", "json"))


def test_every_replica_has_a_name_a_volume_and_a_device_of_its_own(kubectl: Kubectl) -> None:
    pods = read(kubectl, "pods", "-l", "app=db")["items"]
    assert [pod["metadata"]["name"] for pod in pods] == ["db-0", "db-1"]
    claims = read(kubectl, "persistentvolumeclaims")["items"]
    assert {c["metadata"]["name"]: c["status"]["phase"] for c in claims} == {
        "data-db-0": "Bound",
        "data-db-1": "Bound",
    }
    devices = read(kubectl, "resourceclaims")["items"]
    results = [c["status"]["allocation"]["devices"]["results"][0]["device"] for c in devices]
    assert len(set(results)) == 2


def test_the_service_has_the_addresses_of_the_pods(kubectl: Kubectl) -> None:
    label = "kubernetes.io/service-name=db"
    kubectl("wait", "--for=jsonpath={.endpoints[1].conditions.ready}=true", "endpointslice",
            "-l", label, "--timeout=30s")  # fmt: skip
    (found,) = read(kubectl, "endpointslices", "-l", label)["items"]
    assert [each["hostname"] for each in found["endpoints"]] == ["db-0", "db-1"]
    assert kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}")


def test_the_budget_stops_an_eviction(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("wait", "--for=jsonpath={.status.currentHealthy}=2", "pdb/db", "--timeout=30s")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "db-0"}}
    (tmp_path / "eviction.json").write_text(json.dumps(body))
    path = "/api/v1/namespaces/default/pods/db-0/eviction"
    done = kubectl.run("create", "--raw", path, "-f", str(tmp_path / "eviction.json"))
    assert done.status == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in done.err


def test_a_rollout_is_undone(kubectl: Kubectl) -> None:
    kubectl("set", "image", "statefulset/db", "main=db2")
    kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
    assert kubectl("rollout", "history", "statefulset/db").split()[-2:] == ["2", "<none>"]
    kubectl("rollout", "undo", "statefulset/db")
    kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
    images = kubectl("get", "pods", "-l", "app=db", "-o", "jsonpath={..image}").split()
    assert set(images) == {"db"}


def test_kubectl_makes_services_cron_jobs_and_autoscalers(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "app", "--image=x", "--", "sleep", "1000")
    kubectl("expose", "deployment", "app", "--port=80")
    kubectl("autoscale", "deployment", "app", "--max=3", "--cpu-percent=50")
    kubectl("create", "cronjob", "report", "--image=x", "--schedule=0 0 * * *", "--", "true")
    kubectl("create", "job", "now", "--from=cronjob/report")
    rows = kubectl("get", "service,hpa,cronjob", "--no-headers").splitlines()
    shown = [row.split()[:4] for row in rows if row]
    assert ["horizontalpodautoscaler.autoscaling/app", "Deployment/app", "cpu:"] in [
        row[:3] for row in shown
    ]
    assert ["cronjob.batch/report", "0", "0", "*"] in shown
    assert any(row[:2] == ["service/app", "ClusterIP"] for row in shown)
