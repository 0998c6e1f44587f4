"""A scene on a stage: its cluster, then its manifests, then what became of the pods."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from moorage.api.core import Pod
from moorage.insight.snapshot.stand_ins import STAND_IN
from moorage.kit.clock import REAL, ManualClock
from tests.stories.resting import at_rest
from tests.stories.scenes import Ended, Played, Told, by_request, shown_device, shown_pod
from tests.stories.stage import WORKLOADS, Stage, play, profile_trees, trees_of

RETRIES_MAX = 60  # seconds of a clock that is moved: after those, a group is not on its nodes


def play_scene(told: Told, folder: Path) -> Ended:
    """Return what became of the pods of a scene in a live cluster with its data in a folder."""
    scene = told.scene
    # Nobody is tried again while victims leave, unless the clock is moved.
    clock = ManualClock(datetime.now(UTC)) if scene.preempted else None

    async def act(stage: Stage) -> Ended:
        if scene.profile:
            await stage.furnish(profile_trees(scene.profile, scene.numa_node))
        await stage.furnish(tree for path in told.cluster for tree in trees_of(path))
        before = {pod.metadata.uid for pod in stage.objects.list(Pod)}
        await stage.apply(*told.manifests, namespace=scene.namespace)
        await at_rest(stage.cluster)

        def pods() -> list[Played]:
            new = [pod for pod in stage.objects.list(Pod) if pod.metadata.uid not in before]
            return [became(stage, pod, workloads_of(told)) for pod in new]

        ended = Ended(pods(), tuple(_leaving(stage)))
        if clock is None or not ended.preempted:
            return ended
        await _after_victims(stage, clock, ended.preempted)
        return ended._replace(then=pods())

    return play(folder, act, clock=clock or REAL)


def _leaving(stage: Stage) -> list[str]:
    """Return the pods that the scheduler evicted."""
    return sorted(
        pod.metadata.name
        for pod in stage.objects.list(Pod)
        if pod.metadata.deletion_timestamp is not None
        and any(each.reason == "PreemptionByScheduler" for each in pod.status.conditions or ())
    )


async def _after_victims(stage: Stage, clock: ManualClock, victims: tuple[str, ...]) -> None:
    """Play the kubelets of the victims, and wait until others have their places."""
    for name in victims:
        await stage.delete(Pod, name)
    for _ in range(RETRIES_MAX):
        await at_rest(stage.cluster)
        if not any(pod.status.nominated_node_name for pod in stage.objects.list(Pod)):
            return
        await clock.advance(1)


def workloads_of(told: Told) -> frozenset[str]:
    trees = (tree for path in told.manifests for tree in trees_of(path))
    return frozenset(tree["metadata"]["name"] for tree in trees if tree["kind"] in WORKLOADS)


def became(stage: Stage, pod: Pod, workloads: frozenset[str]) -> Played:
    name = pod.metadata.annotations.get(STAND_IN) or shown_pod(pod.metadata.name, workloads)
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
    quiet = not node and not message
    return Played(name, node, by_request(given) if node else {}, message, quiet=quiet)
