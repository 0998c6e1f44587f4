"""The example that README plans comes to the same end in a live cluster."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.api.codec import to_tree
from moorage.api.core import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim
from moorage.cli.plan import command
from moorage.client.contract import Request, Response
from moorage.client.in_process import InProcessTransport
from moorage.client.indexer import Indexer
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import ProgramContext
from moorage.hardware import Catalogue
from moorage.kit.clock import LoopClock, run_simulated
from moorage.store.memory import open_memory
from tests.stories.stage import Stage, trees_of

TRAINING = Path(__file__).parents[2] / "examples" / "training"
PROFILE = "dgx-h100"

# The pod or the deployment that it is of, its node, and its devices.
End = tuple[str, str, tuple[str, ...]]


def planned() -> list[End]:
    arguments = ["-f", str(TRAINING), "--profile", PROFILE, "-o", "json"]
    result = CliRunner().invoke(command, arguments)
    return sorted(
        (
            _family(each["pod"].removeprefix("default/")),
            each.get("node") or "",
            tuple(
                device["device"]
                for request in each.get("requests", ())
                for device in request["devices"]
            ),
        )
        for each in json.loads(result.stdout)["pods"]
    )


def played(folder: Path, gap_s: float) -> list[End]:
    """Return what becomes of the example if its objects are applied so much time apart."""

    async def run() -> list[End]:
        clock = LoopClock()
        around = ProgramContext(Gates.parse(), clock, random.Random(0).random)
        async with (
            open_memory(clock=lambda: clock.now().timestamp()) as store,
            embedded(folder, around, store=store) as cluster,
        ):
            await _apply(cluster, gap_s)
            await asyncio.sleep(30)
            return sorted(_ends(cluster.controlling.informers.objects))

    return run_simulated(run())


async def _apply(cluster: EmbeddedCluster, gap_s: float) -> None:
    stage, machines = Stage(cluster), Catalogue().fleet(PROFILE)
    for value in (*machines.nodes, *machines.classes, *machines.slices):
        assert (await stage.send(to_tree(value))).status < 300
    await asyncio.sleep(1)
    for path in sorted(TRAINING.glob("*.yaml")):
        for tree in trees_of(path):
            assert (await stage.send(tree)).status < 300
            await asyncio.sleep(gap_s)


def _ends(objects: Indexer) -> Iterator[End]:
    for pod in objects.list(Pod):
        names = [each.resource_claim_name for each in pod.status.resource_claim_statuses or ()]
        claims: list[Any] = [objects.get(ResourceClaim, "default", name or "") for name in names]
        devices = [
            result.device
            for claim in claims
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
        ]
        yield _family(pod.metadata.name), pod.spec.node_name, tuple(devices)


def _family(pod: str) -> str:
    return pod.partition("-")[0] if pod.startswith("training-") else pod


@pytest.mark.parametrize(
    ("gap_s", "answer_s"), [(0.0, 0.0), (1.0, 0.0), (0.02, 0.01), (0.02, 0.05), (0.01, 0.2)]
)
def test_a_plan_and_a_live_cluster_come_to_the_same(
    gap_s: float, answer_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fast objects follow each other, and however long the server takes to answer."""
    send = InProcessTransport.send

    async def slowly(self: InProcessTransport, request: Request) -> Response:
        await asyncio.sleep(answer_s)
        return await send(self, request)

    monkeypatch.setattr(InProcessTransport, "send", slowly)
    ends = planned()
    assert [bool(node) for _, node, _ in ends] == [True, True, False, True]
    assert played(tmp_path, gap_s) == ends
