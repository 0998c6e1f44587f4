"""Stories as plans: the folders of `examples/stories` and the seeds' own manifests, planned.

In a folder `cluster.yaml` is the cluster, and every other file holds manifests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.testing import CliRunner, Result

from moorage.cli.cluster_options import ClusterInput, cluster_options
from moorage.cli.main import moor
from moorage.insight.plan.planner import Plan
from moorage.insight.plan.planner import plan as plan_snapshot

EXAMPLES = Path(__file__).parents[2] / "examples"
STORIES = EXAMPLES / "stories"
SEEDS = EXAMPLES / "seeds"
NOW = ("--now", "2026-01-01T00:00:00Z")


class Told(NamedTuple):
    """What became of a pod, or of a claim that no pod uses."""

    node: str | None
    devices: dict[str, str]  # by request, the names with spaces between
    message: str
    tree: dict[str, Any]  # all that `moor plan -o json` says of it


def story(name: str, *files: str, seeds: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the options for a story: its cluster, files of its own, and examples of the seeds."""
    cluster = STORIES / name / "cluster.yaml"
    own = [STORIES / name / f"{file}.yaml" for file in files]
    taken = [SEEDS / f"{seed}.yaml" for seed in seeds]
    on = ("--on", str(cluster)) if cluster.exists() else ()
    return *(word for file in (*taken, *own) for word in ("-f", str(file))), *on, *NOW


def run(command: str, *options: str) -> Result:
    result = CliRunner().invoke(moor, [command, *options])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def plan(*options: str) -> dict[str, Told]:
    """Return what becomes of pods by name, or of claims and templates that no pod uses."""
    result = run("plan", *options, "-o", "json")
    assert result.exit_code in (0, 1), result.output
    tree = json.loads(result.stdout)
    return dict(map(_told, (*tree["pods"], *tree["standIns"])))


def the_one(*options: str) -> Told:
    (told,) = plan(*options).values()
    return told


def nodes(told: dict[str, Told]) -> dict[str, str | None]:
    return {name: each.node for name, each in told.items()}


def explain(*options: str) -> str:
    """Return the explanation of what does not fit."""
    result = run("explain", *options)
    assert result.exit_code == 1, result.output
    return result.stdout


def planned(*options: str) -> Plan:
    """Return the plan itself, for what `moor plan` does not print."""
    given: ClusterInput = _given.main([*options], standalone_mode=False)
    return plan_snapshot(given.everything, given.context)


@click.command()
@cluster_options
def _given(given: ClusterInput) -> ClusterInput:
    return given


def _told(tree: dict[str, Any]) -> tuple[str, Told]:
    name = tree.get("standsFor") or tree["pod"].removeprefix("default/")
    devices = {each["request"]: " ".join(_names(each)) for each in tree.get("requests", ())}
    why = tree.get("message") or tree.get("reason", "")
    return name, Told(tree.get("node"), devices, why, tree)


def _names(granted: dict[str, Any]) -> Iterator[str]:
    for device in granted["devices"]:
        yield device["device"]
