"""Every scene comes to the same outcome twice: as a plan of files, and in a live cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stories.playing import play_scene, workloads_of
from tests.stories.scenes import (
    OUTCOME,
    Played,
    Told,
    all_scenes,
    by_request,
    differences,
    shown_device,
    shown_pod,
)
from tests.stories.stage import RefusedManifestError
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
    return Played(shown_pod(name, workloads), tree.get("node") or "", by_request(devices), pending)


def _planned_device(tree: dict[str, Any]) -> str:
    return shown_device(
        tree["device"],
        is_admin=tree.get("adminAccess", False),
        share=tree.get("shareId", ""),
        consumed=tree.get("consumed"),
    )


@pytest.mark.parametrize("told", SCENES, ids=named)
def test_the_plan_comes_to_it(told: Told) -> None:
    result = run("plan", *told.options, "-o", "json")
    if told.scene.refused:
        assert told.scene.refused in result.stderr
        return
    workloads = workloads_of(told)
    found = [planned(each, workloads) for each in json.loads(result.stdout)["pods"]]
    assert differences(told.scene.pods, found) == ([], [])


# --- live ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", SCENES, ids=named)
def test_a_live_cluster_comes_to_it(told: Told, tmp_path: Path) -> None:
    refused = told.scene.refused
    if refused:
        with pytest.raises(RefusedManifestError, match=refused):
            play_scene(told, tmp_path)
    else:
        assert differences(told.scene.pods, play_scene(told, tmp_path)) == ([], [])


def test_every_story_says_what_it_comes_to() -> None:
    folders = {path.name for path in STORIES.iterdir() if path.is_dir()}
    assert {path.parent.name for path in STORIES.glob(f"*/{OUTCOME}")} == folders
