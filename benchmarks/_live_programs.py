"""The scheduler and the controllers in a process of their own, beside a server over HTTP.

    python -m benchmarks._live_programs DATA_FOLDER

It says how long it took until all kinds were there.
"""

from __future__ import annotations

import asyncio
import cProfile
import logging
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from moorage.client.client_factory import RestConfig, http_client, load_rest_config
from moorage.cluster.programs import (
    ControllerProgram,
    ProgramContext,
    SchedulerProgram,
    run_all,
    shared_informers,
)
from moorage.kit.process_memory import relax_garbage_collector

PROFILE = "LIVE_PROFILE"  # the file for a profile of this process
STARTED = time.monotonic()


def main(folder: Path) -> None:
    """Run until killed."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    profile, profiler = os.environ.get(PROFILE), cProfile.Profile()
    if profile:
        profiler.enable()
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(folder))
    if profile:
        profiler.dump_stats(profile)


async def _run(folder: Path) -> None:
    access = load_rest_config(str(folder / "kubeconfig"))
    around = ProgramContext()
    async with (
        http_client(_as_scheduler(access, folder), manager="kube-scheduler") as scheduler,
        http_client(access, manager="kube-controller-manager") as manager,
    ):
        authority = access.authority.decode()
        informers = shared_informers(manager, around)
        scheduling = SchedulerProgram(scheduler, around, informers=informers)
        controlling = ControllerProgram(manager, around, authority=authority, informers=informers)
        task = asyncio.create_task(run_all(informers, scheduling, controlling))
        await informers.wait_for_sync()
        relax_garbage_collector()
        print(f"synced {time.monotonic() - STARTED:.3f}", flush=True)
        await task


def _as_scheduler(access: RestConfig, folder: Path) -> RestConfig:
    """Return the access with the scheduler's certificate, if the server has certificates."""
    certificate = folder / "pki" / "scheduler.crt"
    if not certificate.exists():
        return access
    key = certificate.with_suffix(".key")
    return replace(access, certificate=certificate.read_bytes(), key=key.read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
