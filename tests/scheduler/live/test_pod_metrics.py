"""Requests and limits of pods, as metrics."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.kit.metrics import exposition
from moorage.scheduler.live.metrics import resource_families


def pod(phase: str = "Running", **spec: Any) -> Pod:
    resources = {
        "requests": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2"},
        "limits": {"memory": "2Gi", "example.com/gpu": "2"},
    }
    containers = [{"name": "c", "image": "i", "resources": resources}]
    tree = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": containers, "nodeName": "n", "schedulerName": "s", **spec},
        "status": {"phase": phase},
    }
    return decode_tree(tree, Pod).value


def values(found: Pod) -> dict[str, str]:
    lines = (line for line in exposition(resource_families([found])).splitlines() if line[0] != "#")
    return dict(line.rsplit(" ", 1) for line in lines)


def test_each_resource_is_a_series_with_its_unit() -> None:
    where = 'namespace="ns",pod="p",node="n",scheduler="s",priority="7"'
    assert values(pod(priority=7)) == {
        f'kube_pod_resource_request{{{where},resource="cpu",unit="cores"}}': "1.5",
        f'kube_pod_resource_request{{{where},resource="example.com/gpu",unit=""}}': "2",
        f'kube_pod_resource_request{{{where},resource="memory",unit="bytes"}}': "1073741824",
        f'kube_pod_resource_limit{{{where},resource="example.com/gpu",unit=""}}': "2",
        f'kube_pod_resource_limit{{{where},resource="memory",unit="bytes"}}': "2147483648",
    }


def test_the_overhead_counts_for_all_requests_and_for_limits_that_there_are() -> None:
    found = values(pod(overhead={"cpu": "500m", "memory": "1Gi"}))
    by_name = {
        key.split("{")[0] + key.split('resource="')[1].split('"')[0]: found[key] for key in found
    }
    assert by_name["kube_pod_resource_requestcpu"] == "2"
    assert by_name["kube_pod_resource_limitmemory"] == "3221225472"
    assert "kube_pod_resource_limitcpu" not in by_name


def test_a_pod_that_has_ended_counts_for_nothing() -> None:
    assert values(pod("Succeeded")) == {}
    assert values(pod("Succeeded", nodeName=""))  # without a node it cannot have ended
