"""Which pods a controller has already.

A pod names its controller. Between a deployment and its pods stands a replica set, which a dump may
not have; then its name tells whose it is.
"""

from __future__ import annotations

from mooring.api.core import Pod
from mooring.api.meta import OwnerReference
from mooring.claims.owners import controller_of
from mooring.insight.concerns import full_name
from mooring.insight.snapshot.snapshot import Controller, Snapshot


class ExistingPods:
    """The pods of a snapshot by their controllers, and the names that are taken."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.names = {full_name(pod) for pod in snapshot.pods}
        self._deployments = {
            full_name(each) for each in snapshot.controllers if each.kind == "Deployment"
        }
        self._deployment_of_set = {
            full_name(each): owner.name
            for each in snapshot.controllers
            if each.kind == "ReplicaSet" and (owner := _deployment(each)) is not None
        }
        self._by_owner: dict[tuple[str, str, str], list[Pod]] = {}
        for pod in snapshot.pods:
            if (owner := controller_of(pod.metadata)) is not None:
                self._note(pod, owner)

    def _note(self, pod: Pod, owner: OwnerReference) -> None:
        namespace = pod.metadata.namespace
        self._by_owner.setdefault((namespace, owner.kind, owner.name), []).append(pod)
        if owner.kind == "ReplicaSet":
            # The set may not be in the dump; then its name says whose it is.
            base = owner.name.rpartition("-")[0]
            name = self._deployment_of_set.get(f"{namespace}/{owner.name}", base)
            self._by_owner.setdefault((namespace, "Deployment", name), []).append(pod)

    def is_left_to_owner(self, controller: Controller) -> bool:
        """Tell whether a replica set is a deployment's, which then decides how many pods it has."""
        owner = _deployment(controller) if controller.kind == "ReplicaSet" else None
        return (
            owner is not None
            and f"{controller.metadata.namespace}/{owner.name}" in self._deployments
        )

    def of(self, controller: Controller) -> list[Pod]:
        """Return the pods that a controller has, ended ones included."""
        key = (controller.metadata.namespace, controller.kind, controller.metadata.name)
        return [pod for pod in self._by_owner.get(key, ()) if _is_of(pod, controller)]


def _deployment(controller: Controller) -> OwnerReference | None:
    owner = controller_of(controller.metadata)
    return owner if owner is not None and owner.kind == "Deployment" else None


def _is_of(pod: Pod, controller: Controller) -> bool:
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind != controller.kind:
        return True
    # A controller of the same name that was made anew has other pods.
    return owner.uid in ("", controller.metadata.uid)
