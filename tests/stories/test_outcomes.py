"""Every scene comes to the same outcome twice: as a plan of files, and in a live cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mooring.api.core import Pod
from mooring.insight.planning.standins import stands_for
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
from tests.stories.stage import (
    WORKLOADS,
    RefusedManifestError,
    Stage,
    play,
    profile_trees,
    trees_of,
)
from tests.stories.tellers import STORIES, run

SCENES = list(all_scenes())


def named(told: Told) -> str:
    return f"{told.name}: {told.scene.title}"


def workloads_of(told: Told) -> frozenset[str]:
    trees = (tree for path in told.manifests for tree in trees_of(path))
    return frozenset(tree["metadata"]["name"] for tree in trees if tree["kind"] in WORKLOADS)


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


def became(stage: Stage, pod: Pod, workloads: frozenset[str]) -> Played:
    name = stands_for(pod) or shown_pod(pod.metadata.name, workloads)
    given = (
        (
            each.request,
            shown_device(
                each.device, is_admin=each.is_admin, share=each.share, consumed=each.consumed
            ),
        )
        for each in stage.given(pod)
    )
    node = pod.spec.node_name
    message = "" if node else stage.message(pod.metadata.name, pod.metadata.namespace)
    return Played(name, node, by_request(given) if node else {}, message)


@pytest.mark.parametrize("told", SCENES, ids=named)
def test_a_live_cluster_comes_to_it(told: Told, tmp_path: Path) -> None:
    scene = told.scene

    async def act(stage: Stage) -> list[Played]:
        if scene.profile:
            await stage.furnish(profile_trees(scene.profile, scene.numa_node))
        await stage.furnish(tree for path in told.cluster for tree in trees_of(path))
        before = {pod.metadata.uid for pod in stage.objects.all(Pod)}
        await stage.apply(*told.manifests, namespace=scene.namespace)
        workloads = workloads_of(told)
        pods = [pod for pod in stage.objects.all(Pod) if pod.metadata.uid not in before]
        return [became(stage, pod, workloads) for pod in pods]

    if scene.refused:
        with pytest.raises(RefusedManifestError, match=scene.refused):
            play(tmp_path, act)
        return
    assert differences(scene.pods, play(tmp_path, act)) == ([], [])


def test_every_story_says_what_it_comes_to() -> None:
    folders = {path.name for path in STORIES.iterdir() if path.is_dir()}
    assert {path.parent.name for path in STORIES.glob(f"*/{OUTCOME}")} == folders
