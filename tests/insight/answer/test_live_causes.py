"""The scheduler's line and `moor explain --live` name the same cause, word for word."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from moorage.kit.clock import run_simulated
from tests.corpus import corpus
from tests.insight.answer.live_play import (
    BARE,
    Outcome,
    bare_nodes,
    machines,
    played,
    playing,
    trees_in,
)
from tests.stories.scenes import Told, all_scenes
from tests.stories.stage import profile_trees, trees_of

FOLDER = Path(__file__).parents[1] / "situations"
OWN = sorted(path.stem for path in FOLDER.glob("*.yaml"))
PUBLIC = [f"{number:02}" for number in range(1, 21)]
SCENES = [told for told in all_scenes() if any(pod.pending for pod in told.scene.pods)]
# The live scheduler reports of members of a group what Kubernetes reports, and no cause of ours.
GROUPED = ("composite-group", "disruption-budget", "gang", "group-preemption", "group-topology")
ALONE = [told for told in SCENES if told.name not in GROUPED]
NODES = 7


def check(outcome: Outcome) -> None:
    """Check that both say the same of all pods, except those that nobody tries."""
    print(outcome)
    silent = outcome.causes.keys() - outcome.events.keys()
    assert outcome.disagreements() == []
    assert len(silent) == outcome.gated, silent
    assert outcome.causes or outcome.refused


@pytest.mark.parametrize("name", OWN)
def test_of_a_situation(name: str, tmp_path: Path) -> None:
    check(played(tmp_path, *trees_in(FOLDER / f"{name}.yaml")))


@pytest.mark.parametrize("name", OWN)
def test_of_a_situation_among_nodes_without_devices(name: str, tmp_path: Path) -> None:
    outcome = played(tmp_path, *trees_in(FOLDER / f"{name}.yaml"), *bare_nodes(NODES - 1))
    check(outcome)
    assert not any(BARE in each for each in outcome.causes.values())


@pytest.mark.parametrize("number", PUBLIC)
def test_of_a_published_situation(number: str, tmp_path: Path) -> None:
    (folder,) = corpus("situations").glob(f"{number}-*")
    profile = json.loads((folder / "expect.json").read_text())["profile"]
    trees = machines(profile) if profile else []
    files = [path for name in ("cluster.yaml", "pods.yaml") if (path := folder / name).exists()]
    check(played(tmp_path, *trees, *trees_in(*files)))


@pytest.mark.parametrize("told", ALONE, ids=lambda told: f"{told.name}: {told.scene.title}")
def test_of_a_story_on_seven_nodes(told: Told, tmp_path: Path) -> None:
    async def run() -> Outcome:
        async with playing(tmp_path) as play:
            scene = told.scene
            here = [tree for path in told.cluster for tree in trees_of(path)]
            if scene.profile:
                here += profile_trees(scene.profile, scene.numa_node)
            nodes = sum(tree["kind"] == "Node" for tree in here)
            await play.stage.furnish([*bare_nodes(NODES - nodes), *here])
            await play.stage.apply(*told.manifests, namespace=scene.namespace)
            await asyncio.sleep(60)
            return await play.outcome()

    outcome = run_simulated(run())
    check(outcome)
    assert not any(BARE in each for each in outcome.causes.values())
