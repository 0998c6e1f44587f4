"""Recorded lives of claims again, with the controllers that clean up behind them.

The garbage collector and the protection of groups stand in for what the recordings' control plane
had; the protection's finalizer, which the server gives, is given here.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from conformance._recordings import Names
from moorage.api.core import Node
from moorage.api.meta import ObjectMeta
from moorage.api.scheduling import PROTECTION_FINALIZER, PodGroup
from moorage.controllers.controller_manager import workload_controllers
from moorage.controllers.device_taint_eviction import DeviceTaintEvictionController
from moorage.controllers.pool_status import PoolStatusRequestController
from tests.controllers.scenes import ALL, Scene
from tests.controllers.test_lifecycles import BETTER, SCENARIOS, Replay, _without, ours, theirs
from tests.corpus import corpus

PLAYED = [*SCENARIOS, "podgroup-deleted-first"]


class Together(Replay):
    """A recording played to all our controllers."""

    def __init__(self) -> None:
        others = workload_controllers(authority="")
        Scene.__init__(
            self, DeviceTaintEvictionController(ALL), PoolStatusRequestController(ALL), *others
        )
        self.model.put(*(Node(metadata=ObjectMeta(name=name)) for name in ("node-a", "node-b")))
        self.names = Names()

    def _object(self, tree: dict[str, Any]) -> Any:
        value = super()._object(tree)
        if isinstance(value, PodGroup):
            held = replace(value.metadata, finalizers=(PROTECTION_FINALIZER,))
            return replace(value, metadata=held)
        return value

    def groups(self) -> dict[str, Any]:
        return {
            each.metadata.name: (
                list(each.metadata.finalizers),
                each.metadata.deletion_timestamp is not None,
            )
            for each in self.model.objects.list(PodGroup)
        }


def recorded_groups(state: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (group["metadata"]["finalizers"], "deletionTimestamp" in group["metadata"])
        for name, group in (state.get("podgroups") or {}).items()
    }


@pytest.mark.parametrize("name", PLAYED)
def test_nothing_goes_too_early_and_nothing_stays(name: str) -> None:
    recording = json.loads(corpus("lifecycle", f"{name}.json").read_text())
    replay = Together()
    for number, step in enumerate(recording["steps"]):
        replay.model.told.clear()
        if step["expectError"] is None:
            replay.do(step)
        replay.schedule(step["state"])
        replay.advance(step["settle_s"])
        varied = step.get("varied") or []
        wanted, found = _without(theirs(step["state"]), varied), _without(ours(replay), varied)
        if (name, number) not in BETTER:
            assert found == wanted, f"step {number}"
            assert replay.groups() == recorded_groups(step["state"]), f"step {number}"
