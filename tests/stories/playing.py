"""A scene on a stage: its cluster, then its manifests, then what became of the pods."""

from __future__ import annotations

from pathlib import Path

from mooring.api.core import Pod
from mooring.insight.plan.placements import stands_for
from tests.stories.scenes import Played, Told, by_request, shown_device, shown_pod
from tests.stories.stage import WORKLOADS, Stage, play, profile_trees, trees_of


def play_scene(told: Told, folder: Path) -> list[Played]:
    """Return what became of the pods of a scene in a live cluster with its data in a folder."""
    scene = told.scene

    async def act(stage: Stage) -> list[Played]:
        if scene.profile:
            await stage.furnish(profile_trees(scene.profile, scene.numa_node))
        await stage.furnish(tree for path in told.cluster for tree in trees_of(path))
        before = {pod.metadata.uid for pod in stage.objects.list(Pod)}
        await stage.apply(*told.manifests, namespace=scene.namespace)
        pods = [pod for pod in stage.objects.list(Pod) if pod.metadata.uid not in before]
        return [became(stage, pod, workloads_of(told)) for pod in pods]

    return play(folder, act)


def workloads_of(told: Told) -> frozenset[str]:
    trees = (tree for path in told.manifests for tree in trees_of(path))
    return frozenset(tree["metadata"]["name"] for tree in trees if tree["kind"] in WORKLOADS)


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
