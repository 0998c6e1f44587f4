"""Planning Kubernetes' scheduler workloads in one process, on one core.

    dev.py bench simulation [NAME …] [--nodes N] [--shapes N] [--shuffled] [--runs N]
                            [--record FILE]

The benchmark counts everything from pods and claims as objects to reservations: claims put into the
cluster, the cycle, and the recording of its decisions. Making the objects and taking in nodes,
slices and classes is not. Cached facts about devices start cold. Times are process times,
the best of some runs, each in a process of its own; "calibrated" is what they come to on the
machine whose loop takes 0.20 s, where Kubernetes was measured.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import process_time
from typing import NamedTuple

from msgspec.structs import replace

from benchmarks._record import Record, Row
from benchmarks._workloads import Setting, Variation, Workload, find
from moorage.allocator import Allocated, Inventory, allocate
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.insight.plan.planner import new_names
from moorage.kit.process_memory import keep_what_exists
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.pod_groups import Gang, schedule_group
from moorage.scheduler.reservation import IdSource, Reservation, reserve
from moorage.scheduler.scheduling_cycle import Placed, schedule

NAME = "simulation"
REFERENCE_LOOP_S = 0.20
LOOP_RUNS = 3
SHUFFLE_SEED = 1


class Figures(NamedTuple):
    """The result of one run."""

    pods: int
    placed: int
    seconds: float
    loop_s: float
    nodes_judged: int
    nodes_asked: int
    peak_mib: float

    @property
    def calibrated_pods_per_s(self) -> float:
        """The speed on the reference machine."""
        return self.pods / self.seconds * self.loop_s / REFERENCE_LOOP_S


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each workload."""
    options = _options(arguments or [])
    variation = Variation(options.shapes, SHUFFLE_SEED if options.shuffled else None)
    print(f"{options.shapes} shapes of pods, {'mutated' if options.shuffled else 'plain'} fleets")
    print("workload               pods/s   µs/pod  calibrated  ×Kubernetes    goal", end="")
    print("  judged/pod  asked/pod  peak MiB")
    rows = []
    for workload in find(options.names):
        figures = best_of(workload, variation, options.nodes, options.runs)
        print(_line(workload, figures), flush=True)
        pods_per_s = round(figures.calibrated_pods_per_s, 1)
        rows.append(Row(workload.name, (workload.kubernetes_pods_per_s, pods_per_s)))
    if options.record:
        _record(rows).write(options.record)


def _record(rows: list[Row]) -> Record:
    return Record(
        title="Planning the workloads of Kubernetes' scheduler benchmark",
        unit="pods per second",
        series=("Kubernetes: API server, etcd, scheduler", "Moorage: planning alone, one process"),
        rows=rows,
        note="The two do not do the same: Kubernetes stores and serves what Moorage keeps in "
        "memory. Moorage's figures are scaled to the machine on which Kubernetes was measured.",
        is_logarithmic=True,
    )


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py bench simulation")
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads; all by default")
    parser.add_argument("--nodes", type=int, help="nodes in place of the workload's own number")
    parser.add_argument("--shapes", type=int, default=1, help="different pods, in turn")
    parser.add_argument("--shuffled", action="store_true", help="mutate and shuffle the fleet")
    parser.add_argument("--runs", type=int, default=2, help="of which the best counts")
    parser.add_argument("--record", type=Path, help="write the figures to a file, for the plots")
    return parser.parse_args(arguments)


def _line(workload: Workload, figures: Figures) -> str:
    goal = workload.goal_pods_per_s
    missing = figures.pods - figures.placed
    return (
        f"{workload.name:21} {figures.pods / figures.seconds:7.0f} "
        f"{figures.seconds / figures.pods * 1e6:8.0f} {figures.calibrated_pods_per_s:11.0f} "
        f"{figures.calibrated_pods_per_s / workload.kubernetes_pods_per_s:12.0f} "
        f"{'' if goal is None else goal:>7} "
        f"{figures.nodes_judged / figures.pods:11.1f} {figures.nodes_asked / figures.pods:10.1f} "
        f"{figures.peak_mib:9.0f}" + (f"  {missing} pods not placed" if missing else "")
    )


def best_of(workload: Workload, variation: Variation, nodes: int | None, runs: int) -> Figures:
    """Return the figures of the fastest run, each in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        found = [
            pool.submit(measure, workload.name, variation, nodes or workload.nodes).result()
            for _ in range(runs)
        ]
    return max(found, key=lambda figures: figures.calibrated_pods_per_s)


def measure(name: str, variation: Variation, nodes: int) -> Figures:
    """Return the figures of one run."""
    (workload,) = find([name])
    setting = workload.make(nodes, variation)
    gc.collect()
    keep_what_exists()  # as the commands do once all objects are read
    loop_s = loop_seconds()
    figures = simulate(setting)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures._replace(loop_s=min(loop_s, loop_seconds()), peak_mib=peak_mib)


def loop_seconds() -> float:
    """Return the best time of the calibration loop."""
    best = float("inf")
    for _ in range(LOOP_RUNS):
        start = process_time()
        _loop()
        best = min(best, process_time() - start)
    return best


def _loop(count: int = 2_000_000) -> int:
    table: dict[int, int] = {}
    total = 0
    for number in range(count):
        table[number & 1023] = total
        total += number ^ (total & 255)
    return total


# --- one run ------------------------------------------------------------------------------------


def simulate(setting: Setting) -> Figures:
    """Let the pods of a setting come and return what that took."""
    cluster = _cluster(setting)
    fresh = new_names(cluster)
    run = _Run(cluster, fresh, setting)
    for arrival in setting.arrivals[: setting.pods_before]:
        run.take(arrival.pod, arrival.claims)
    run.placed = 0
    judged, asked = cluster.work.nodes_filtered, cluster.work.nodes_asked
    start = process_time()
    if setting.group is None:
        for arrival in setting.arrivals[setting.pods_before :]:
            run.take(arrival.pod, arrival.claims)
    else:
        run.take_group()
    seconds = process_time() - start
    return Figures(
        pods=len(setting.arrivals) - setting.pods_before,
        placed=run.placed,
        seconds=seconds,
        loop_s=REFERENCE_LOOP_S,
        nodes_judged=cluster.work.nodes_filtered - judged,
        nodes_asked=cluster.work.nodes_asked - asked,
        peak_mib=0.0,
    )


class _Run:
    """Pods that come, and those that are there."""

    def __init__(self, cluster: Cluster, fresh: IdSource, setting: Setting) -> None:
        self._cluster = cluster
        self._fresh = fresh
        self._setting = setting
        self._staying: list[Reservation] = []
        self.placed = 0

    def take(self, pod: Pod, claims: tuple[ResourceClaim, ...]) -> None:
        """Let one pod come, and the oldest go if there are enough."""
        cluster, in_flight = self._cluster, self._setting.in_flight
        for claim in claims:
            cluster.put_claim(claim)
        outcome = schedule(cluster, pod)
        if not isinstance(outcome, Placed):
            return
        self.placed += 1
        reservation = reserve(cluster, outcome, self._fresh)
        if in_flight is not None:
            self._staying.append(reservation)
            if len(self._staying) >= in_flight:
                self._let_go(self._staying.pop(0))

    def take_group(self) -> None:
        """Let all pods of the group come."""
        assert self._setting.group is not None
        pods = tuple(arrival.pod for arrival in self._setting.arrivals)
        gang = Gang(self._setting.group, pods, existing=len(pods))
        results = schedule_group(self._cluster, gang, self._fresh)
        self.placed = sum(isinstance(each, Reservation) for each in results)

    def _let_go(self, reservation: Reservation) -> None:
        self._cluster.remove_pod(reservation.pod)
        for claim in reservation.claims:
            self._cluster.remove_claim(claim.metadata.namespace, claim.metadata.name)


def _cluster(setting: Setting) -> Cluster:
    """Return the cluster before the first pod comes."""
    cluster = Cluster()
    for node in setting.nodes:
        cluster.put_node(node)
    for device_class in setting.classes:
        cluster.put_class(device_class)
    for slice_ in setting.slices:
        cluster.put_slice(slice_)
    for claim in (*allocated(setting), *setting.claims):
        cluster.put_claim(claim)
    if setting.group is not None:
        cluster.put_group(setting.group)
    return cluster


def allocated(setting: Setting) -> list[ResourceClaim]:
    """Return the claims of before with devices, in an inventory that nobody else uses."""
    inventory = Inventory()
    for device_class in setting.classes:
        inventory.put_class(device_class)
    for slice_ in setting.slices:
        inventory.put_slice(slice_)
    found = []
    for number, claim in enumerate(setting.before):
        answer = allocate(inventory, setting.nodes[number % len(setting.nodes)], [claim])
        assert isinstance(answer, Allocated), "there is room for what comes before"
        (result,) = answer.results(lambda: "00000000-0000-4000-8000-000000000000")
        given = replace(claim, status=replace(claim.status, allocation=result))
        inventory.put_claim(given)
        found.append(given)
    return found


if __name__ == "__main__":
    main()
