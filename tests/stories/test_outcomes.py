"""Every scene comes to the same outcome twice: as a plan of files, and in a live cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stories.playing import play_scene, workloads_of
from tests.stories.scenes import (
    OUTCOME,
    Ended,
    Played,
    Told,
    all_scenes,
    by_request,
    shown_device,
    shown_pod,
)
from tests.stories.stage import RefusedManifestError, trees_of
from tests.stories.tellers import STORIES, run

SCENES = list(all_scenes())


def named(told: Told) -> str:
    return f"{told.name}: {told.scene.title}"


# --- offline ------------------------------------------------------------------------------------


def planned(tree: dict[str, Any], workloads: frozenset[str]) -> Played:
    name = tree.get("standsFor") or tree["pod"].partition("/")[2]
    devices = (
        (request["request"], _planned_device(each))
        for request in tree.get("requests", ())
        for each in request["devices"]
    )
    pending = "" if tree.get("node") else tree.get("message") or tree.get("reason", "")
    return Played(
        shown_pod(name, workloads),
        tree.get("node") or "",
        by_request(devices),
        pending,
        quiet=not tree.get("node") and not tree.get("message"),
    )


def _planned_device(tree: dict[str, Any]) -> str:
    return shown_device(
        tree["device"],
        is_admin=tree.get("adminAccess", False),
        share=tree.get("shareId", ""),
        consumed=tree.get("consumed"),
    )


@pytest.mark.parametrize("told", SCENES, ids=named)
def test_the_plan_comes_to_it(told: Told, tmp_path: Path) -> None:
    result = run("plan", *told.options, "-o", "json")
    if told.scene.refused:
        assert told.scene.refused in result.stderr
        return
    trees = _all_of(result.stdout)
    workloads = workloads_of(told)
    ended = Ended([planned(each, workloads) for each in trees], _victims(trees))
    if ended.preempted:
        left = _cluster_without(told, ended.preempted, tmp_path)
        again = _all_of(run("plan", *told.options_on([left]), "-o", "json").stdout)
        ended = ended._replace(then=[planned(each, workloads) for each in again])
    assert ended.faults(told.scene) == []


def _all_of(plan: str) -> list[dict[str, Any]]:
    tree = json.loads(plan)
    return [*tree["pods"], *tree["standIns"]]


def _victims(trees: list[dict[str, Any]]) -> tuple[str, ...]:
    names = {name.partition("/")[2] for tree in trees for name in tree.get("preempts", ())}
    return tuple(sorted(names))


def _cluster_without(told: Told, pods: tuple[str, ...], folder: Path) -> Path:
    items = [
        tree
        for path in told.cluster
        for tree in trees_of(path)
        if (tree["kind"], tree["metadata"]["name"]) not in {("Pod", name) for name in pods}
    ]
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


# --- live ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", SCENES, ids=named)
def test_a_live_cluster_comes_to_it(told: Told, tmp_path: Path) -> None:
    refused = told.scene.refused
    if refused:
        with pytest.raises(RefusedManifestError, match=refused):
            play_scene(told, tmp_path)
    else:
        assert play_scene(told, tmp_path).faults(told.scene) == []


def test_every_story_says_what_it_comes_to() -> None:
    folders = {path.name for path in STORIES.iterdir() if path.is_dir()}
    assert {path.parent.name for path in STORIES.glob(f"*/{OUTCOME}")} == folders
