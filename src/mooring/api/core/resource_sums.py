"""Sums of what containers ask for.

1. Containers and sidecars (init containers that keep running) run together: their sum counts.
2. While an init container runs, the sidecars before it run too: its own sum with theirs counts.
3. The larger of both counts, resource by resource.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod
from mooring.api.core.resources import ResourceList

Source = Callable[[Container], ResourceList]


def at_once(pod: Pod, source: Source) -> ResourceList:
    """Return the most that the containers of a pod need at once, of what a source says of each."""
    running: ResourceList = {}
    for container in pod.spec.containers:
        add(running, source(container))
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in pod.spec.init_containers:
        amounts = source(container)
        if container.is_sidecar:
            add(running, amounts)
            add(sidecars, amounts)
            raise_to(starting, sidecars)
        else:
            together = dict(amounts)
            add(together, sidecars)
            raise_to(starting, together)
    raise_to(running, starting)
    return running


def add(total: ResourceList, more: ResourceList) -> None:
    """Add amounts to a total."""
    for name, quantity in more.items():
        known = total.get(name)
        total[name] = quantity if known is None else known + quantity


def raise_to(total: ResourceList, least: ResourceList) -> None:
    """Raise a total to no less than the amounts."""
    for name, quantity in least.items():
        known = total.get(name)
        if known is None or known < quantity:
            total[name] = quantity
