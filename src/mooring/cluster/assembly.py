"""Which processes a cluster on this machine has, and how they find each other."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mooring.apiserver.certificates import Pair
from mooring.apiserver.credentials import write_privately
from mooring.apiserver.kubeconfig import kubeconfig
from mooring.cluster.supervision import Part

CREDENTIALS = "pki"
ANY_PORT = "127.0.0.1:0"


class Plan(Struct, frozen=True):
    """What kind of cluster is wanted; texts are as on the command line."""

    folder: Path
    address: str = "127.0.0.1"
    port: int = 6443
    profiles: tuple[str, ...] = ()
    form: str = "scalar"
    config: Path | None = None
    gates: tuple[str, ...] = ()  # options that choose gates


def parts_of(plan: Plan) -> tuple[Part, ...]:
    """Return the processes, the server first: all others need it."""
    alone = ("--leader-elect=false", "--metrics-bind-address", ANY_PORT, *plan.gates)
    config = ("--config", str(plan.config)) if plan.config is not None else ()
    scheduler = ("scheduler", "--kubeconfig", str(kubeconfig_of(plan.folder, "scheduler")))
    pki = plan.folder / CREDENTIALS
    controllers = (
        "controllers",
        "--kubeconfig",
        str(kubeconfig_of(plan.folder, "controller-manager")),
        "--root-ca-file",
        str(pki / "ca.crt"),
        "--nodes-kubeconfig",
        str(plan.folder / "kubeconfig"),
        "--numa-node",
        plan.form,
    )
    profiles = (word for name in plan.profiles for word in ("--profile", name))
    return (
        server_part(plan),
        Part("scheduler", (*scheduler, *config, *alone), "scheduling at "),
        Part("controllers", (*controllers, *profiles, *alone), "controlling at "),
    )


def server_part(plan: Plan) -> Part:
    """Return the server's process."""
    arguments = (
        "server",
        "--data-dir",
        str(plan.folder),
        "--bind-address",
        plan.address,
        "--secure-port",
        str(plan.port),
        *plan.gates,
    )
    return Part("server", arguments, "serving at ")


def on_serving(plan: Plan, line: str) -> Part:
    """Write how the others reach the server; return the server as it is to be started again.

    That is at the same port, so that everybody finds it.
    """
    url = line.split()[2].rstrip(";")
    pki = plan.folder / CREDENTIALS
    authority = (pki / "ca.crt").read_bytes()
    for user in ("scheduler", "controller-manager"):
        pair = Pair((pki / f"{user}.crt").read_bytes(), (pki / f"{user}.key").read_bytes())
        text = kubeconfig(url, authority, user, pair)
        write_privately(kubeconfig_of(plan.folder, user), text.encode())
    return server_part(replace(plan, port=urlsplit(url).port or plan.port))


def kubeconfig_of(folder: Path, user: str) -> Path:
    """Return where the kubeconfig of a program is."""
    return folder / CREDENTIALS / f"{user}.kubeconfig"
