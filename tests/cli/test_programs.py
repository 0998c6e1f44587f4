"""`moor scheduler`, `moor controllers`, `moor up`, `moor down`, `moor status`: what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from moorage.cli.controllers import _chosen
from moorage.cli.main import moor
from moorage.cli.scheduler import explaining
from moorage.cluster.cluster_processes import ClusterPlan, cluster_processes, server_process
from moorage.scheduler.live import SchedulerConfig

UNREACHABLE = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
"""
PROFILES = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(moor, arguments)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(UNREACHABLE)
    return str(path)


@pytest.mark.parametrize("program", ["scheduler", "controllers"])
def test_a_server_that_cannot_be_reached_is_named(program: str, kubeconfig: str) -> None:
    done = run(program, "--kubeconfig", kubeconfig, "--metrics-bind-address", "0")
    assert done.exit_code == 3
    assert "error: cannot reach 127.0.0.1:1: " in done.output


@pytest.mark.parametrize("program", ["scheduler", "controllers"])
def test_a_kubeconfig_that_is_not_there_is_named(program: str) -> None:
    done = run(program, "--kubeconfig", "/there/is/none")
    assert (done.exit_code, done.output) == (
        3,
        "error: kubeconfig /there/is/none: there is no such file\n",
    )


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["scheduler", "--metrics-bind-address", "x"], "no address such as"),
        (
            ["controllers", "--metrics-bind-address", "0.0.0.0:1"],
            "without --tls-cert-file only a loopback address is allowed",
        ),
        (["scheduler", "--tls-cert-file", __file__], "only with --tls-private-key-file"),
        (["scheduler", "--client-ca-file", __file__], "only with --tls-cert-file"),
        (["scheduler", "--leader-elect=maybe"], "is not a valid boolean"),
        (["scheduler", "--explain-in", "log"], "'log' is not one of 'condition', 'event', 'none'"),
        (["up", "--explain-in", "log"], "'log' is not one of 'condition', 'event', 'none'"),
        (
            ["scheduler", "--leader-elect-lease-duration", "5s"],
            "the lease duration must exceed the renew deadline",
        ),
        (["scheduler", "--feature-gates", "Nonsense=true"], "Nonsense"),
        (["controllers", "--controllers", "*,-nonsense"], "there is no '-nonsense'"),
        (["up", "--profile", "dgx-h10"], "did you mean dgx-h100?"),
        (
            ["up", "--numa-node", "list", "--feature-gates", "DRAListTypeAttributes=false"],
            "--numa-node list: feature gate DRAListTypeAttributes is off",
        ),
        (
            ["up", "--numa-node", "list", "--gates-preset", "kubernetes-1.37"],
            "--numa-node list: feature gate DRAListTypeAttributes is off",
        ),
        (
            ["plan", "--profile", "r7725", "--numa-node=list", "--gates-preset=kubernetes-1.37"],
            "have a list; use --numa-node scalar, or --feature-gates DRAListTypeAttributes=true",
        ),
        (
            ["controllers", "--numa-node", "list", "--gates-preset", "kubernetes-1.37"],
            "--numa-node list: feature gate DRAListTypeAttributes is off",
        ),
        (["up", "--runtime-config", "api/all=x"], "--runtime-config: api/all: 'x' is neither"),
        (["up", "--profile", "dgx-h100=0"], "must be a number from 1"),
        (["down", "--timeout", "x"], "no duration"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], fault: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert fault in done.output


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kind: [", "config.yaml:"),
        ("", "must hold exactly one KubeSchedulerConfiguration"),
        ("apiVersion: v1\nkind: Pod\n", "expected a KubeSchedulerConfiguration, not Pod"),
        (f"{PROFILES}profiles:\n- schedulerName: a\n- schedulerName: a\n", "profiles[1]"),
        (f"{PROFILES}podMaxBackoffSeconds: x\n", "podMaxBackoffSeconds"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_named(
    text: str, fault: str, tmp_path: Path, kubeconfig: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    done = run("scheduler", "--config", str(path), "--kubeconfig", kubeconfig)
    assert done.exit_code == 3
    assert done.output.startswith("error: --config: ")
    assert fault in done.output


def test_where_nothing_runs_nothing_is_stopped_or_shown(tmp_path: Path) -> None:
    place = ("--data-dir", str(tmp_path / "none"))
    text = f"no cluster runs in {tmp_path / 'none'}\n"
    assert (run("down", *place).exit_code, run("down", *place).output) == (0, text)
    assert (run("status", *place).exit_code, run("status", *place).output) == (1, text)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("up", "--data-dir", str(tmp_path / "file" / "x"))
    assert done.exit_code == 3
    assert f"error: {tmp_path / 'file' / 'x'}: Not a directory" in done.output


@pytest.mark.parametrize(
    ("chosen", "preset", "wanted"),
    [
        (None, "moorage", "condition"),
        (None, "kubernetes-1.37", "event"),
        ("condition", "kubernetes-1.37", "condition"),
        ("event", "moorage", "event"),
        ("none", "moorage", "none"),
    ],
)
def test_explanations_leave_kubernetes_messages_alone_where_its_gates_are_wanted(
    chosen: str | None, preset: str, wanted: str
) -> None:
    config = explaining(SchedulerConfig(), chosen, preset)
    assert config.explain_in == wanted
    assert config.reports_composites == (wanted == "condition")


@pytest.mark.parametrize(("is_isolated", "name"), [(False, "server"), (True, "scheduler")])
def test_a_cluster_tells_its_scheduler_where_to_explain(
    tmp_path: Path, is_isolated: bool, name: str
) -> None:
    plan = ClusterPlan(tmp_path, is_isolated=is_isolated)
    for part in cluster_processes(plan):
        assert "--explain-in" not in part.arguments
    for part in cluster_processes(replace(plan, explain_in="event")):
        assert ("--explain-in" in part.arguments) == (part.name == name)
        if part.name == name:
            assert part.arguments[part.arguments.index("--explain-in") + 1] == "event"


@pytest.mark.parametrize("is_isolated", [False, True])
def test_up_hands_on_which_versions_are_served(is_isolated: bool) -> None:
    config = "scheduling.k8s.io/v1beta1=true"
    plan = ClusterPlan(Path("/data"), runtime_config=config, is_isolated=is_isolated)
    part = server_process(plan)
    assert part.arguments[part.arguments.index("--runtime-config") + 1] == config
    assert "--runtime-config" not in server_process(ClusterPlan(Path("/data"))).arguments


def test_a_controller_that_is_off_by_default_runs_only_if_it_is_named() -> None:
    assert "explainer-controller" not in _chosen("*")
    assert _chosen("*,explainer-controller") == _chosen("*") | {"explainer-controller"}
    assert _chosen("explainer-controller") == {"explainer-controller"}
    assert _chosen("*,explainer-controller,-explainer-controller") == _chosen("*")
