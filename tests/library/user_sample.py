"""A program of a user, with types: checked by mypy --strict and pyright, and run by its test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

import mooring


def free_gpus(world: mooring.World) -> list[str]:
    """Return the names of free GPUs."""
    gpus = world.devices().where('device.driver == "gpu.nvidia.com"')
    assert_type(gpus, mooring.Devices)
    assert_type(gpus[0], mooring.Device)
    assert_type(gpus[1:], mooring.Devices)
    several: Sequence[mooring.Device] = gpus
    return [device.id for device in several if device.is_free]


def causes(plan: mooring.Plan) -> dict[str, str]:
    """Return why pods wait, by name."""
    found: dict[str, str] = {}
    for pod in plan.pods:
        if isinstance(pod, mooring.PlacedPod):
            assert_type(pod.devices, tuple[str, ...])
        else:
            assert_type(pod, mooring.PendingPod)
            explanation = pod.explain()
            found[pod.full_name] = explanation.cause
            assert_type(explanation.fixes, tuple[mooring.Fix, ...])
    return found


def mean_wait_s(world: mooring.World) -> float:
    """Return the mean wait of two days."""
    trace = mooring.random_arrivals("pod/notebook-0", per_hour=2, until="48h", duration=1800)
    assert_type(trace, list[mooring.Arrival])
    found = mooring.simulate(world, trace, until="48h", left_over=False)
    chart = mooring.chart({"waiting": [(each.at_s, each.waiting) for each in found.timeline]})
    assert_type(chart.svg, str)
    return found.mean_wait_s or 0.0


def main() -> None:
    """Ask all questions."""
    try:
        world = mooring.load("examples/training", profile=["dgx-h100", "dgx-h100"])
    except mooring.MooringError as error:
        raise SystemExit(str(error)) from None
    plan = world.plan()
    fit = world.fit("deployment/training", replicas_max=100)
    print(free_gpus(plan.after), causes(plan), mean_wait_s(world), fit.total, fit.by_node)
    print(world.what_if(cordon=("dgx-h100-0",)).is_worse, [c.name for c in plan.after.claims()])


if __name__ == "__main__":
    main()
