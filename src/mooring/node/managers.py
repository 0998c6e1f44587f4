"""Those who give devices, as one."""

from __future__ import annotations

from functools import reduce

from mooring.api.core import Pod
from mooring.node.contract import DeviceManager, Given


class Managers:
    """Asks all who give devices: to prepare in their order, to take back in reverse."""

    def __init__(self, *managers: DeviceManager) -> None:
        self._managers = managers

    async def prepare(self, pod: Pod) -> None:
        """Have all devices of a pod ready; the first that refuses ends it."""
        for manager in self._managers:
            await manager.prepare(pod)

    def given(self, pod: Pod, container: str) -> Given:
        """Return all that a container gets."""
        found = (manager.given(pod, container) for manager in self._managers)
        return reduce(lambda one, other: one + other, found, Given())

    async def before_start(self, pod: Pod, container: str) -> None:
        """Have all devices of a container as new."""
        for manager in self._managers:
            await manager.before_start(pod, container)

    async def unprepare(self, pod: Pod) -> None:
        """Take all devices of a pod back."""
        for manager in reversed(self._managers):
            await manager.unprepare(pod)
