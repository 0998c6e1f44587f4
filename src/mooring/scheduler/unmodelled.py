"""What this scheduler does not know how to place: such a pod is refused, never placed wrongly."""

from __future__ import annotations

from typing import Any

from mooring.api.core.pod import DEFAULT_SCHEDULER, Pod
from mooring.scheduler.refusals import Refusal

PLUGIN = "Unmodelled"

# Volumes that restrict where a pod may go, by rules on other objects or on other pods.
BINDING_VOLUMES = {
    "persistentVolumeClaim": "a persistent volume claim",
    "ephemeral": "a volume claim of its own",
    "awsElasticBlockStore": "a disk that one pod mounts at a time",
    "azureDisk": "a disk that nodes attach",
    "cinder": "a disk that nodes attach",
    "gcePersistentDisk": "a disk that one pod mounts at a time",
    "iscsi": "a disk that one pod mounts at a time",
    "rbd": "a disk that one pod mounts at a time",
}


def unmodelled(
    pod: Pod,
    *,
    scheduler_name: str = DEFAULT_SCHEDULER,
    other_names: frozenset[str] = frozenset(),
    is_admitted: bool = False,
) -> Refusal | None:
    """Return why the pod is not for this scheduler, or None.

    A pod that a cluster has admitted has the rules of its runtime class in its own fields.
    """
    texts = [text for volume in pod.spec.volumes if (text := _of_volume(volume))]
    asked = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    if asked != scheduler_name and asked not in other_names:
        texts.append(f'the pod asks for the scheduler "{asked}", this is "{scheduler_name}"')
    if pod.spec.runtime_class_name and not is_admitted:
        texts.append(
            f'the runtime class "{pod.spec.runtime_class_name}" may restrict nodes, '
            "which is known only once a cluster has admitted the pod"
        )
    return Refusal(PLUGIN, tuple(texts), is_unresolvable=True) if texts else None


def _of_volume(volume: Any) -> str | None:
    if not isinstance(volume, dict):
        return None
    for source, words in BINDING_VOLUMES.items():
        if volume.get(source) is not None:
            return f'volume "{volume.get("name", "")}" is {words}, which is not modelled'
    return None
