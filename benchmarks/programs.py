"""Scheduler, controllers and informers with a server in memory: their CPU time for each pod.

    dev.py bench programs

All programs run in this process, as objects: nothing is encoded and no network is used. The time
of the server in memory is not counted. Claims come from a template, some pods at a time, as in
`bench live`, which measures the same through HTTPS. Printed are the best of some runs, requests,
and what the work queues of the controllers had to do.
With a file name in PROGRAMS_PROFILE, the last run is profiled by CPU time.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import logging
import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from time import process_time
from typing import Any, NamedTuple

from msgspec.structs import replace

from benchmarks._workloads import PLAIN, Setting, Variation, find
from benchmarks.live import fill, new_pod, templates
from benchmarks.simulation import REFERENCE_LOOP_S, allocated, loop_seconds
from moorage.api.timestamp import Timestamp
from moorage.client.writes import Create
from moorage.cluster.programs import (
    ControllerProgram,
    ProgramContext,
    SchedulerProgram,
    run_all,
    shared_informers,
)
from moorage.kit.process_memory import relax_garbage_collector
from tests.cluster.model_server import ModelServer

RUNS = 5
NODES = 200
AT_A_TIME = 4  # pods that come in each turn of the event loop
WAIT_S = 120


class Figures(NamedTuple):
    """The result of a run."""

    pods: int
    cpu_s: float
    requests: Counter[str]
    reconciles: dict[str, int]
    loop_s: float  # of the calibration loop, before and after


def main() -> None:
    """Print the figures of each workload."""
    logging.disable(logging.CRITICAL)
    (template,) = find(["template-200"])
    makers: dict[str, Callable[[int, Variation], Setting]] = {
        "template-200": template.make,
        "fill-200": fill,
    }
    for name, make in makers.items():
        runs = [_measure(make(NODES, PLAIN)) for _ in range(RUNS)]
        best = min(runs, key=lambda each: each.cpu_s / each.loop_s)
        own_us = best.cpu_s / best.pods * 1e6
        print(
            f"{name}: {own_us:.0f} µs of CPU a pod, the best of {RUNS} runs; "
            f"{own_us * REFERENCE_LOOP_S / best.loop_s:.0f} µs where the calibration loop takes "
            f"{REFERENCE_LOOP_S:.2f} s"
        )
        for what, counts in (("requests", best.requests), ("reconciles", best.reconciles)):
            each = (f"{key} {count / best.pods:.2f}" for key, count in sorted(counts.items()))
            print(f"  {what} a pod: {', '.join(each)}")


def _measure(setting: Setting) -> Figures:
    profile = os.environ.get("PROGRAMS_PROFILE")
    profiler = cProfile.Profile(process_time)
    try:
        return asyncio.run(_run(setting, profiler if profile else None))
    finally:
        if profile:
            profiler.dump_stats(profile)


async def _run(setting: Setting, profiler: cProfile.Profile | None) -> Figures:
    server = ModelServer(Timestamp(datetime.now(UTC)))
    claims = [replace(c, metadata=replace(c.metadata, uid="")) for c in setting.claims]
    things: list[Any] = [*setting.classes, *setting.nodes, *setting.slices, *claims]
    server.model.put(*things, *templates(setting), *allocated(setting))
    context = ProgramContext()
    informers = shared_informers(server, context)
    scheduling = SchedulerProgram(server, context, informers=informers)
    controlling = ControllerProgram(server, context, informers=informers)
    task = asyncio.create_task(run_all(informers, scheduling, controlling))
    await informers.wait_for_sync()
    await asyncio.sleep(0.2)  # what the controllers make for nodes and namespaces
    pods = [arrival.pod for arrival in setting.arrivals]
    loop_s = loop_seconds()
    relax_garbage_collector()  # as the programs do
    server.requests.clear()
    server.spent_s, before, start_s = 0.0, _reconciles(controlling), process_time()
    if profiler is not None:
        profiler.enable()
    async with asyncio.timeout(WAIT_S):
        for number, pod in enumerate(pods):
            await server.write(Create(new_pod(pod)))
            if number % AT_A_TIME:
                await asyncio.sleep(0)
        while len(server.bound) < len(pods) or server.requests["create Event"] < len(pods):
            await asyncio.sleep(0.001)
    if profiler is not None:
        profiler.disable()
    cpu_s = process_time() - start_s - server.spent_s
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    gc.unfreeze()
    after = _reconciles(controlling)
    return Figures(
        len(pods),
        cpu_s,
        server.requests,
        {key: count - before.get(key, 0) for key, count in after.items()},
        (loop_s + loop_seconds()) / 2,
    )


def _reconciles(program: ControllerProgram) -> dict[str, int]:
    """Return how many keys workers have handled, by the name of the queue."""
    names = {each.controller.source or each.controller.name for each in program.loops.running}
    counts = {name: program.queues.worked.count(name) for name in names}
    return {name: count for name, count in counts.items() if count}


if __name__ == "__main__":
    main()
