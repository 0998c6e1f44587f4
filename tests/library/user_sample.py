"""A program of a user, with types: checked by mypy --strict and pyright, and run by its test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

import moorage


def free_gpus(world: moorage.World) -> list[str]:
    """Return the names of free GPUs."""
    gpus = world.devices().where('device.driver == "gpu.nvidia.com"')
    assert_type(gpus, moorage.Devices)
    assert_type(gpus[0], moorage.Device)
    assert_type(gpus[1:], moorage.Devices)
    several: Sequence[moorage.Device] = gpus
    return [device.id for device in several if device.is_free]


def causes(plan: moorage.Plan) -> dict[str, str]:
    """Return why pods wait, by name."""
    found: dict[str, str] = {}
    for pod in plan.pods:
        if isinstance(pod, moorage.PlacedPod):
            assert_type(pod.devices, tuple[str, ...])
        else:
            assert_type(pod, moorage.PendingPod)
            explanation = pod.explain()
            found[pod.full_name] = explanation.cause
            assert_type(explanation.fixes, tuple[moorage.Fix, ...])
    return found


def mean_wait_s(world: moorage.World) -> float:
    """Return the mean wait of two days."""
    trace = moorage.random_arrivals("pod/notebook-0", per_hour=2, until="48h", duration=1800)
    assert_type(trace, list[moorage.Arrival])
    found = moorage.simulate(world, trace, until="48h", left_over=False)
    chart = moorage.chart({"waiting": [(each.at_s, each.waiting) for each in found.timeline]})
    assert_type(chart.svg, str)
    return found.mean_wait_s or 0.0


def main() -> None:
    """Ask all questions."""
    try:
        world = moorage.load("examples/training", profile=["dgx-h100", "dgx-h100"])
    except moorage.MoorageError as error:
        raise SystemExit(str(error)) from None
    plan = world.plan()
    fit = world.fit("deployment/training", replicas_max=100)
    print(free_gpus(plan.after), causes(plan), mean_wait_s(world), fit.total, fit.by_node)
    print(world.what_if(cordon=("dgx-h100-0",)).is_worse, [c.name for c in plan.after.claims()])


if __name__ == "__main__":
    main()
