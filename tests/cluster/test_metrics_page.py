"""The reference page has every metric that a program exposes, and no other."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.apiserver.http.messages import Request, Response
from moorage.apiserver.server import assembled
from moorage.apiserver.settings import Auditing, Settings
from moorage.cluster.metrics_exporter import MetricsProgram
from moorage.cluster.node import NodeSettings, node_program
from moorage.cluster.programs import ControllerProgram, ProgramContext, SchedulerProgram
from moorage.kit.clock import EPOCH
from moorage.validation.strategy import Context
from reference.metrics import OF_KEPS, OURS, metrics_pages

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `([a-z_]+)`(.*?) \| (\w+) \|")
TYPE = re.compile(r"^# TYPE (\S+) (\w+)$", re.MULTILINE)
NOBODY: Any = None  # a client that nothing is asked of

REQUEST = frozenset(["verb", "group", "version", "resource", "subresource", "scope", "component"])
POD_SECURITY = frozenset({"request_operation", "resource", "subresource"})
CREATES = frozenset({"status", "admin_access", "owner_api_group", "owner_api_kind"})
KUBE_POD = frozenset(["namespace", "pod", "node", "scheduler", "priority", "resource", "unit"])

# As Kubernetes 1.37 has them.
KUBERNETES: Mapping[str, tuple[str, frozenset[str]]] = {
    name: (kind, frozenset(labels.split()) if isinstance(labels, str) else labels)
    for name, kind, labels in (
        ("apiserver_audit_error_total", "counter", "plugin"),
        ("apiserver_audit_event_total", "counter", ""),
        ("apiserver_current_inflight_requests", "gauge", "request_kind"),
        ("apiserver_longrunning_requests", "gauge", REQUEST),
        ("apiserver_request_total", "counter", REQUEST | {"dry_run", "code"}),
        ("device_taint_eviction_controller_pod_deletion_duration_seconds", "histogram", ""),
        ("device_taint_eviction_controller_pod_deletions_total", "counter", ""),
        (
            "dra_grpc_operations_duration_seconds",
            "histogram",
            "driver_name method_name grpc_status_code",
        ),
        ("dra_node_prepare_skips_total", "counter", "driver_name"),
        ("dra_node_unprepare_skips_total", "counter", "driver_name"),
        ("dra_operations_duration_seconds", "histogram", "operation_name is_error"),
        ("dra_resource_claims_in_use", "gauge", "driver_name"),
        (
            "dynamic_resource_allocation_resource_claims",
            "gauge",
            "allocated admin_access source",
        ),
        ("dynamic_resource_allocation_resourceclaim_creates_total", "counter", CREATES),
        ("kube_pod_resource_limit", "gauge", KUBE_POD),
        ("kube_pod_resource_request", "gauge", KUBE_POD),
        ("kubelet_active_pods", "gauge", "static"),
        ("kubelet_running_containers", "gauge", "container_state"),
        ("kubelet_running_pods", "gauge", ""),
        ("kubelet_started_containers_errors_total", "counter", "container_type code"),
        ("kubelet_started_containers_total", "counter", "container_type"),
        ("kubelet_started_pods_errors_total", "counter", ""),
        ("kubelet_started_pods_total", "counter", ""),
        ("pod_security_errors_total", "counter", POD_SECURITY | {"fatal"}),
        (
            "pod_security_evaluations_total",
            "counter",
            POD_SECURITY | {"decision", "mode", "policy_level", "policy_version"},
        ),
        ("pod_security_exemptions_total", "counter", POD_SECURITY),
        (
            "resourcepoolstatusrequest_controller_request_processing_duration_seconds",
            "histogram",
            "driver_name",
        ),
        (
            "resourcepoolstatusrequest_controller_request_processing_errors_total",
            "counter",
            "driver_name",
        ),
        (
            "resourcepoolstatusrequest_controller_requests_processed_total",
            "counter",
            "driver_name",
        ),
        ("scheduler_cache_size", "gauge", "type"),
        (
            "scheduler_dra_bindingconditions_allocations_total",
            "counter",
            "profile driver status",
        ),
        (
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "histogram",
            "profile driver status",
        ),
        ("scheduler_pending_pods", "gauge", "queue"),
        (
            "scheduler_plugin_execution_duration_seconds",
            "histogram",
            "plugin extension_point status",
        ),
        ("scheduler_pod_scheduling_attempts", "histogram", ""),
        ("scheduler_pod_scheduling_sli_duration_seconds", "histogram", "attempts"),
        ("scheduler_podgroup_schedule_attempts_total", "counter", "result profile"),
        ("scheduler_podgroup_scheduling_algorithm_duration_seconds", "histogram", ""),
        ("scheduler_podgroup_scheduling_attempt_duration_seconds", "histogram", "result profile"),
        ("scheduler_preemption_attempts_total", "counter", ""),
        ("scheduler_preemption_victims", "histogram", ""),
        ("scheduler_schedule_attempts_total", "counter", "result profile"),
        ("scheduler_scheduling_algorithm_duration_seconds", "histogram", ""),
        ("scheduler_scheduling_attempt_duration_seconds", "histogram", "result profile"),
        ("scheduler_unschedulable_pods", "gauge", "plugin profile"),
        ("workqueue_adds_total", "counter", "name"),
        ("workqueue_depth", "gauge", "name"),
        ("workqueue_queue_duration_seconds", "histogram", "name"),
        ("workqueue_retries_total", "counter", "name"),
        ("workqueue_work_duration_seconds", "histogram", "name"),
    )
}


def described(program: str) -> dict[str, str]:
    """Return the metrics of a program on the page, aliases too, with their types."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {program}\n", 1)[1].split("\n## ", 1)[0]
    found: dict[str, str] = {}
    for match in filter(None, map(ROW.match, section.splitlines())):
        names = [match[1], *re.findall(r"`([a-z_]+)`", match[2])]
        found.update(dict.fromkeys(names, match[3]))
    return found


def told(text: str) -> dict[str, str]:
    """Return the metrics of an exposition with their types."""
    found = TYPE.findall(text)
    assert len(found) == len(dict(found)), "a metric is told twice"
    return dict(found)


def test_the_server(tmp_path: Path) -> None:
    auditing = Auditing(str(tmp_path / "audit.log"))

    async def text() -> str:
        settings = Settings(tmp_path / "data", allows_all=True, auditing=auditing)
        async with assembled(settings) as server:
            answer = await server.application.router.handle(Request("GET", "/metrics"))
            assert isinstance(answer, Response)
            return answer.body.decode()

    assert told(asyncio.run(text())) == described("moor server")


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/metrics", "moor scheduler"),
        ("/metrics/resources", "moor scheduler, resources of pods"),
    ],
)
def test_the_scheduler(path: str, title: str) -> None:
    pages = SchedulerProgram(NOBODY, ProgramContext()).metrics_pages
    assert set(pages) == {"/metrics", "/metrics/resources"}
    assert told(pages[path]()) == described(title)


def test_the_controllers() -> None:
    pages = ControllerProgram(NOBODY, ProgramContext()).metrics_pages
    assert {path: told(text()) for path, text in pages.items()} == {
        "/metrics": described("moor controllers")
    }


def test_the_exporter() -> None:
    context = Context(gates=Gates.parse(), now=Timestamp(EPOCH))
    program = MetricsProgram(NOBODY, ProgramContext(), context)
    # Before the first pass it has nothing to tell of devices.
    assert told(program.metrics_pages["/metrics"]()).items() < described("moor metrics").items()


def test_the_node(tmp_path: Path) -> None:
    async def text() -> dict[str, str]:
        settings = NodeSettings("n", tmp_path, runtime="sim")
        async with node_program(NOBODY, ProgramContext(), settings) as program:
            return {path: page() for path, page in program.metrics_pages.items()}

    pages = asyncio.run(text())
    assert {path: told(page) for path, page in pages.items()} == {
        "/metrics": described("moor node")
    }


def test_the_page_has_a_section_for_each_program() -> None:
    titles = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert titles == [page.program for page in metrics_pages()]


def test_names_of_kubernetes_mean_what_they_mean_there() -> None:
    families = [family for page in metrics_pages() for family in page.families]
    others = [family for family in families if family.name not in OF_KEPS]
    theirs = [family for family in others if not family.name.startswith(OURS)]
    found = {each.name: (each.type, frozenset(each.labels)) for each in theirs}
    assert found == {name: KUBERNETES.get(name) for name in found}


def test_every_metric_says_what_it_means() -> None:
    for page in metrics_pages():
        for family in page.families:
            assert family.text.endswith("."), family.name
            assert family.name.endswith("_total") == (family.type == "counter"), family.name
