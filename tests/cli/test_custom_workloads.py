"""Workloads of operators in `plan`, `explain`, `lint` and `validate`."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from moorage.cli import explain, lint, plan, validate

OPERATORS = Path(__file__).parents[2] / "examples" / "operators"
MACHINES = ("--profile", "dgx-h100=3")


def run(command: click.Command, *arguments: str, text: str | None = None) -> Result:
    given = ["-f", "-"] if text is not None else []
    return CliRunner().invoke(command, [*given, *arguments], input=text)


def example(name: str, *changes: tuple[str, str]) -> str:
    text = (OPERATORS / f"{name}.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("path", sorted(OPERATORS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_valid_and_placed(path: Path) -> None:
    assert run(validate.command, "-f", str(path)).exit_code == 0
    profile = "gb200-nvl72" if "computedomain" in path.stem else "dgx-h100=3"
    result = run(plan.command, "-f", str(path), "--profile", profile)
    assert result.exit_code == 0, result.output


def test_a_fix_is_written_into_the_custom_resource() -> None:
    broken = example(
        "jobset", ("resourceClaimTemplateName: two-gpus", "resourceClaimTemplateName: two-gpu")
    )
    result = run(explain.command, *MACHINES, "--write-fix", "1", text=broken)
    assert result.exit_code == 0, result.output
    assert result.stdout == example("jobset")


def test_a_mistake_in_a_template_is_reported_once_at_its_line() -> None:
    broken = example(
        "jobset", ("resourceClaimTemplateName: two-gpus", "resourceClaimTemplateName: two-gpu")
    )
    result = run(lint.command, *MACHINES, text=broken)
    line = broken.splitlines().index("              resourceClaimTemplateName: two-gpu") + 1
    (found,) = (each for each in result.stdout.splitlines() if "[unknown-template]" in each)
    assert found.startswith(f"<stdin>:{line}:")


def test_an_invalid_template_is_refused_with_its_path() -> None:
    broken = example("raycluster", ("- name: ray-worker", "- name: Ray_Worker"))
    result = run(validate.command, "-q", text=broken)
    assert result.exit_code == 1
    place = "spec.workerGroupSpecs[0].template.spec.containers[0].name"
    assert f'error: RayCluster default/tune: {place}: Invalid value: "Ray_Worker"' in result.stdout


def test_a_name_that_the_operator_makes_is_reported_with_its_object() -> None:
    broken = example("jobset", ("- name: workers", "- name: Workers"))
    result = run(validate.command, "-q", text=broken)
    assert "spec.replicatedJobs[0]" not in result.stdout
    assert "JobSet default/train: spec.replicatedJobs[1].name: Invalid value" in result.stdout


def test_a_malformed_workload_is_an_error_with_its_place() -> None:
    broken = example("jobset", ("    replicas: 2", "    replicas: many"))
    for command in (validate.command, plan.command):
        result = run(command, text=broken, *(() if command is validate.command else MACHINES))  # noqa: B026
        assert result.exit_code != 0
        assert "spec.replicatedJobs[1].replicas: must be an integer that is not negative" in (
            result.output
        )


def test_strict_kinds_rejects_what_is_only_partly_checked() -> None:
    result = run(validate.command, "--strict-kinds", text=example("jobset"))
    assert result.exit_code == 1


def test_jobs_that_exist_are_not_made_again() -> None:
    job = """---
apiVersion: batch/v1
kind: Job
metadata: {name: train-workers-0}
spec:
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: x}]
"""
    result = run(plan.command, *MACHINES, "-o", "name", text=example("jobset") + job)
    workers = [each for each in result.stdout.splitlines() if "train-workers-0-" in each]
    assert len(workers) == 1


def test_a_workload_that_a_cluster_stored_makes_nothing(tmp_path: Path) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text(example("jobset", ("  name: train\n", "  name: train\n  uid: u-1\n")))
    result = run(plan.command, *MACHINES, "--on", str(dump))
    assert "train-workers" not in result.output
    assert "not known" not in result.output
