"""Situations as experts know them: the cause they name, what they do first, and what they never do.

`expect.json` was written before any answer was known. Its expressions name what every sensible
wording has. A situation is passed if the cause and the first fix are the expert's, nothing is
offered that no expert would choose, and the first fix, written and planned, places the pod.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from moorage.cli.explain import command as explain
from moorage.cli.plan import command as plan
from moorage.cli.validate import command as validate
from moorage.insight.messages import CAUSE_LENGTH_MAX
from tests.corpus import corpus

FOLDER = Path(__file__).parents[1] / "judged"
# What the expert would write is only advised: a template in place of the claim.
ADVISED = {"replicas-share-a-claim"}


class Situation(NamedTuple):
    """A pending pod, the cluster, and what an expert says."""

    folder: Path
    expected: dict[str, Any]

    @property
    def cluster(self) -> list[str]:
        """The options that describe the cluster."""
        options = ["-n", self.expected["pod"].partition("/")[0]]
        if (self.folder / "cluster.yaml").exists():
            options += ["--on", str(self.folder / "cluster.yaml")]
        if self.expected["profile"]:
            options += ["--profile", self.expected["profile"]]
        return [*options, *self.expected["args"]]

    @property
    def question(self) -> list[str]:
        """The options that ask about the pod."""
        pod = self.expected["pod"].partition("/")[2]
        return [f"pod/{pod}", "-f", str(self.folder / "pods.yaml"), *self.cluster]


def situation(folder: Path) -> Situation:
    return Situation(folder, json.loads((folder / "expect.json").read_text("utf-8")))


def found(patterns: list[str], text: str) -> list[str]:
    return [pattern for pattern in patterns if re.search(pattern, text, re.IGNORECASE)]


def place(given: Situation) -> str:
    """Return why the pod gets no node with the first fix made; nothing if it gets one."""
    written = CliRunner().invoke(explain, [*given.question, "--write-fix", "1"]).stdout
    gates = given.expected["args"]
    valid = CliRunner().invoke(validate, ["-q", "-f", "-", *gates], input=written)
    if valid.exit_code:
        return valid.output
    planned = CliRunner().invoke(plan, ["-f", "-", *given.cluster, "-o", "json"], input=written)
    nodes = {pod["pod"]: pod.get("node") for pod in json.loads(planned.stdout)["pods"]}
    pod = given.expected["pod"]
    is_spared = pod not in nodes and bool(nodes) and all(nodes.values())
    return "" if nodes.get(pod) or is_spared else planned.stdout


def check(folder: Path) -> None:
    given = situation(folder)
    result = CliRunner().invoke(explain, [*given.question, "-o", "json"])
    (answer, *_) = json.loads(result.stdout)["pending"]
    cause, (first, *others) = answer["cause"], answer["fixes"]
    assert "\n" not in cause
    assert len(cause) <= CAUSE_LENGTH_MAX
    assert found(given.expected["cause"], cause), cause
    assert not found(given.expected["cause_not"], cause), cause
    assert found(given.expected["first_fix"] or [""], first["text"]), first["text"]
    for fix in (first, *others):
        assert not found(given.expected["forbidden"], fix["text"]), fix["text"]
    is_change = given.expected["fix_applies"] and folder.name.partition("-")[2] not in ADVISED
    assert first["kind"] == ("change" if is_change else "advice"), first["text"]
    if is_change:
        assert place(given) == ""


@pytest.mark.sweep
@pytest.mark.parametrize("folder", sorted(FOLDER.iterdir()), ids=lambda folder: folder.name)
def test_the_answer_is_an_expert_s(folder: Path) -> None:
    check(folder)


@pytest.mark.sweep
def test_the_answers_to_published_situations_are_an_expert_s() -> None:
    folders = sorted(path.parent for path in corpus("situations").glob("*/expect.json"))
    assert folders
    for folder in folders:
        check(folder)
