"""What commands cost on the dump of a large cluster: CPU seconds and peak memory of the process.

`bench offline` writes dumps of 2,000 nodes with 16,000 GPUs and 5,000 pods with a claim each, as
kubectl prints them, and runs the command line on them. `bench offline --nodes 5000` takes another
size, `--json` or `--yaml` one format, and names of commands only these.

Goals for 2,000 nodes: reading 1.5 s (JSON) and 4 s (YAML), fit, lint and whatif 3 s, 250 MB. They
were set on a dump with fewer bytes for each object, so seconds per 100 MB of text are printed as
well. `read` is what all commands do first. All figures are those of whole processes, so they
include the start of Python.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks._dump import (
    CLASS,
    NAMESPACES,
    DumpSize,
    cluster_objects,
    node_name,
    template_name,
    write_json,
    write_yaml,
)
from benchmarks._record import Record, Row

NAME = "offline"
NODES, PODS_PER_NODE = 2000, 2.5
ROUNDS = 2

JOB = f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: pair}}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly: {{deviceClassName: {CLASS}, count: 2}}
      constraints:
      - {{requests: [gpus], matchAttribute: resource.kubernetes.io/pcieRoot}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: pairs}}
spec:
  replicas: 100
  selector: {{matchLabels: {{app: pairs}}}}
  template:
    metadata: {{labels: {{app: pairs}}}}
    spec:
      containers:
      - name: main
        image: app
        resources: {{claims: [{{name: gpus}}], requests: {{cpu: "4"}}}}
      resourceClaims: [{{name: gpus, resourceClaimTemplateName: pair}}]
"""
UNFIT = f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: newest}}
spec:
  devices:
    requests:
    - name: gpus
      exactly:
        deviceClassName: {CLASS}
        selectors:
        - cel: {{expression: "device.attributes['{CLASS}'].architecture == 'Blackwell'"}}
---
apiVersion: v1
kind: Pod
metadata: {{name: unfit}}
spec:
  containers: [{{name: main, image: app, resources: {{claims: [{{name: gpus}}]}}}}]
  resourceClaims: [{{name: gpus, resourceClaimName: newest}}]
"""


class Command(NamedTuple):
    """A command line, to which `--on DUMP` is added; `job` and `unfit` stand for files."""

    name: str
    arguments: tuple[str, ...]
    goal_s: float | None = None


# What all these commands do with `--on`, and no more.
READ = """\
import sys
from moorage.api.documents import CORE
from moorage.api.gates import Gates
from moorage.api.timestamp import NO_TIME
from moorage.cli.cluster_options import Sources, read_sources
from moorage.sources.cluster_sources import FileSource
from moorage.kit.process_memory import collect_rarely, end_process
from moorage.validation.strategy import Context
collect_rarely()
source = FileSource((sys.argv[1],), False, CORE)
given = read_sources(Sources([source], [], Context(gates=Gates.parse(), now=NO_TIME), "default"))
end_process(0)
"""
COMMANDS = (
    Command("devices", ("devices",)),
    Command("plan", ("plan", "-f", "job")),
    Command("explain", ("explain", "-f", "unfit")),
    Command("fit", ("fit", f"template/{template_name(1)}", "-n", NAMESPACES[0]), 3),
    Command("fit-pairs", ("fit", "deployment/pairs", "-f", "job"), 3),
    Command("lint", ("lint",), 3),
    Command("whatif", ("whatif", "--drain", node_name(1)), 3),
)
READ_GOALS_S = {"json": 1.5, "yaml": 4.0}
PEAK_GOAL_MB = 250


class Cost(NamedTuple):
    """What a process used."""

    cpu_s: float
    peak_mb: float
    status: int


def main(arguments: Sequence[str] = ()) -> None:
    """Print a line for each command and format."""
    options = _options(arguments)
    size = DumpSize(options.nodes, int(options.nodes * PODS_PER_NODE))
    formats = [each for each in ("json", "yaml") if getattr(options, each)] or ["json", "yaml"]
    with tempfile.TemporaryDirectory() as folder:
        manifests = {"job": Path(folder, "job.yaml"), "unfit": Path(folder, "unfit.yaml")}
        manifests["job"].write_text(JOB)
        manifests["unfit"].write_text(UNFIT)
        rows = []
        idle = _best([sys.executable, "-m", "moorage.cli.main", "--version"])
        print(f"{size.nodes:,} nodes, {size.devices:,} devices, {size.pods:,} claims and pods")
        print(f"{'--version':10} {'':5} {idle.cpu_s:7.2f} s {idle.peak_mb:6.0f} MB", flush=True)
        for form in formats:
            dump = _written(Path(folder, f"dump.{form}"), size)
            size_mb = dump.stat().st_size / 1e6
            _report("read", form, READ_GOALS_S[form], ["-c", READ, str(dump)], size_mb)
            for command in COMMANDS:
                if not options.names or command.name in options.names:
                    given = [str(manifests.get(each, each)) for each in command.arguments]
                    line = ["-m", "moorage.cli.main", *given, "--on", str(dump)]
                    cost = _report(command.name, form, command.goal_s, line, size_mb)
                    rows.append(Row(f"{command.name}, {form}", (round(cost.cpu_s, 2),)))
    if options.record:
        title = f"Commands on a dump of {size.nodes:,} nodes with {size.devices:,} devices"
        Record(title, "CPU seconds", ("reading the dump and answering",), rows).write(
            options.record
        )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(each.name for each in COMMANDS))
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--yaml", action="store_true")
    parser.add_argument("--record", type=Path, help="write the figures to a file, for the plots")
    return parser.parse_args(arguments)


def _written(path: Path, size: DumpSize) -> Path:
    write = write_json if path.suffix == ".json" else write_yaml
    with path.open("w") as file:
        write(cluster_objects(size), file)
    print(f"dump{path.suffix}: {path.stat().st_size / 1e6:.0f} MB", flush=True)
    return path


def _report(
    name: str, form: str, goal_s: float | None, arguments: list[str], size_mb: float
) -> Cost:
    cost = _best([sys.executable, *arguments])
    goals = f"goals: {goal_s:g} s, " if goal_s is not None else "goal: "
    print(
        f"{name:10} {form:5} {cost.cpu_s:7.2f} s {cost.peak_mb:6.0f} MB"
        f" {cost.cpu_s / size_mb * 100:6.2f} s/100 MB"
        f"   ({goals}{PEAK_GOAL_MB} MB; status {cost.status})",
        flush=True,
    )
    return cost


def _best(command: list[str]) -> Cost:
    return min(_run(command) for _ in range(ROUNDS))


def _run(command: list[str]) -> Cost:
    """Run a process; only wait4 has what one process used, not the largest of all so far."""
    out = os.open(os.devnull, os.O_WRONLY)
    actions = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
    # As for users, modules are compiled once.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    try:
        pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
    finally:
        os.close(out)
    _, status, usage = os.wait4(pid, 0)
    return Cost(
        usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, os.waitstatus_to_exitcode(status)
    )
