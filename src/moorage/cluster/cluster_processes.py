"""The processes that `moor up` starts on this machine, and their command lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.cdi import DYNAMIC_FOLDER, STATIC_FOLDER
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import write_node_folder
from moorage.cluster.state_folder import CDI, CREDENTIALS, NODE, NodeState, short_path
from moorage.cluster.supervisor import PartSpec, ProcessSpec

SHARED_CDI = (STATIC_FOLDER, DYNAMIC_FOLDER)  # where others say it
ANY_PORT = "127.0.0.1:0"
SERVING, SCHEDULING, CONTROLLING = "serving at ", "scheduling at ", "controlling at "


class NodePlan(Struct, frozen=True):
    """This machine as a node."""

    name: str
    runtime: str = "process"
    drivers: tuple[str, ...] = ()  # by the names that operators use

    def folder(self, plan: ClusterPlan) -> Path:
        """Create the node's root directory; return a path short enough for its sockets."""
        folder = plan.folder / NODE
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)  # a link to nowhere is no folder
        return short_path(folder)

    def state(self, plan: ClusterPlan) -> NodeState:
        """Return the node's entry in the state file."""
        return NodeState(self.name, self.runtime, str(self.folder(plan)), self.drivers)


class ClusterPlan(Struct, frozen=True):
    """The cluster that `moor up` runs; strings are as on the command line."""

    folder: Path
    address: str = "127.0.0.1"
    port: int = 6443
    profiles: tuple[str, ...] = ()
    form: str = "scalar"
    config: Path | None = None
    node: NodePlan | None = None
    gates: tuple[str, ...] = ()  # options that choose gates
    runtime_config: str = ""  # which versions of the API are served
    explain_in: str = ""  # where explanations of pods without a node go; empty: as the gates say
    is_isolated: bool = False  # server, scheduler and controllers run in separate processes
    without: tuple[str, ...] = ()  # parts that other programs replace: scheduler, controllers

    @property
    def has_scheduler(self) -> bool:
        """Whether the cluster runs Moorage's scheduler."""
        return "scheduler" not in self.without

    @property
    def runs_controllers(self) -> bool:
        """Whether to run controllers: those of Kubernetes, or those of simulated nodes."""
        return "controllers" not in self.without or bool(self.profiles)


def cluster_processes(plan: ClusterPlan) -> tuple[ProcessSpec, ...]:
    """Return the processes, the server first: all others need it."""
    programs = _programs(plan) if plan.is_isolated else ()
    node = node_processes(plan, plan.node) if plan.node is not None else ()
    return server_process(plan), *programs, *node


def _programs(plan: ClusterPlan) -> Iterator[ProcessSpec]:
    """Yield the scheduler and the controllers as separate processes."""
    pki = plan.folder / CREDENTIALS
    status = (
        *("--metrics-bind-address", ANY_PORT, "--client-ca-file", str(pki / "ca.crt")),
        *("--tls-cert-file", str(pki / "server.crt")),
        *("--tls-private-key-file", str(pki / "server.key")),
    )
    alone = ("--leader-elect=false", *status, *plan.gates)
    scheduler = ("scheduler", "--kubeconfig", str(kubeconfig_of(plan.folder, "scheduler")))
    controllers = (
        "controllers",
        "--kubeconfig",
        str(kubeconfig_of(plan.folder, "controller-manager")),
        "--root-ca-file",
        str(pki / "ca.crt"),
        "--nodes-kubeconfig",
        str(plan.folder / "kubeconfig"),
    )
    if plan.has_scheduler:
        yield ProcessSpec("scheduler", (*scheduler, *_scheduling(plan), *alone), SCHEDULING)
    if plan.runs_controllers:
        chosen = ("--controllers", "") if "controllers" in plan.without else ()
        words = (*controllers, *chosen, *_simulation(plan), *alone)
        yield ProcessSpec("controllers", words, CONTROLLING)


def _scheduling(plan: ClusterPlan) -> tuple[str, ...]:
    config = ("--config", str(plan.config)) if plan.config is not None else ()
    return (*config, *(("--explain-in", plan.explain_in) if plan.explain_in else ()))


def _simulation(plan: ClusterPlan) -> tuple[str, ...]:
    profiles = (word for name in plan.profiles for word in ("--profile", name))
    return ("--numa-node", plan.form, *profiles)


def node_processes(plan: ClusterPlan, node: NodePlan) -> Iterator[ProcessSpec]:
    """Yield the processes of this machine as a node: its agent, and one for all drivers."""
    root, cdi = str(node.folder(plan)), str(plan.folder / CDI)
    agent = (
        *("node", "--node-name", node.name, "--node-ip", plan.address),
        *("--credentials", str(credentials_of(plan.folder, node.name))),
        *("--root-dir", root, "--runtime", node.runtime, "--stop-containers", "--port", "0"),
        *(word for each in (*SHARED_CDI, cdi) for word in ("--cdi-dir", each)),
        *("--metrics-bind-address", ANY_PORT, *plan.gates),
    )
    yield ProcessSpec("node", agent, "running pods ")
    if node.drivers:
        drivers = (
            *("driver", "run", *node.drivers, "--node-name", node.name),
            *("--kubeconfig", str(credentials_of(plan.folder, node.name) / "kubeconfig")),
            *("--kubelet-dir", root, "--cdi-dir", cdi, "--numa-node", plan.form, "--no-classes"),
        )
        yield ProcessSpec("drivers", drivers, "driving ")


def server_process(plan: ClusterPlan) -> ProcessSpec:
    """Return the server's process: the whole control plane, unless the cluster is isolated."""
    serving = (
        *("--data-dir", str(plan.folder)),
        *("--bind-address", plan.address, "--secure-port", str(plan.port), *plan.gates),
        *(("--runtime-config", plan.runtime_config) if plan.runtime_config else ()),
    )
    if plan.is_isolated:
        return ProcessSpec("server", ("server", *serving), SERVING)
    left_out = (word for name in plan.without for word in ("--without", name))
    programs = (*_scheduling(plan), *_simulation(plan), *left_out)
    parts = (
        *((PartSpec("scheduler", SCHEDULING),) if plan.has_scheduler else ()),
        *((PartSpec("controllers", CONTROLLING),) if plan.runs_controllers else ()),
    )
    return ProcessSpec("server", ("control-plane", *serving, *programs), SERVING, parts)


def on_server_ready(plan: ClusterPlan, line: str) -> ProcessSpec:
    """Write the credentials of the node; return the server's process for a restart.

    A restarted server keeps its port, so that clients find it.
    """
    url = line.split()[2].rstrip(";")
    pki = plan.folder / CREDENTIALS
    if plan.node is not None:
        name = plan.node.name
        write_node_folder(
            credentials_of(plan.folder, name),
            node=name,
            hosts=(plan.address, name),
            server=url,
            pki=pki,
            now=Timestamp(datetime.now(UTC)).truncated(),
        )
    return server_process(replace(plan, port=urlsplit(url).port or plan.port))


def credentials_of(folder: Path, node: str) -> Path:
    """Return the directory of a node's credentials."""
    return folder / CREDENTIALS / f"node-{node}"


def kubeconfig_of(folder: Path, user: str) -> Path:
    """Return the path of a program's kubeconfig."""
    return folder / CREDENTIALS / f"{user}.kubeconfig"
