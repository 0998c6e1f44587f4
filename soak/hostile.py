"""Attack a whole cluster as several users: nobody else is hurt, nothing leaks, nothing falls over.

A case is a cluster of real processes (server, scheduler, controllers, a node with a driver) in a
fresh folder, and 20,000 requests: grammar-based mutations of every kind and verb by users with
different rights (see `soak._hostile`). Accepted objects go through all programs. Meanwhile a quiet
user does ordinary work, and programs are killed with SIGKILL at random moments. The laws:

1. those of each answer (`soak._hostile.answers`): no 5xx, no leak, no foreign success, no Python;
2. answers to the quiet user take less than a second, nothing answered to it is lost, and its pods
   with claims are scheduled, run and are gone in bounded time;
3. objects of others, and files outside of the state folder, are as they were;
4. no program ends by itself, writes a traceback into its log or needs a gigabyte.

Worker, seed and case decide the requests; how those of several workers interleave is up to time.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from soak import Outcome, Plan, Tally
from soak._hostile.answers import AnswerLaws, Findings, curl
from soak._hostile.attack import Attackers
from soak._hostile.bodies import Bodies
from soak._hostile.cleaning import Cleaner
from soak._hostile.grammar import Grammar
from soak._hostile.quiet import Quiet
from soak._hostile.requests import Requests
from soak._hostile.site import HostileSite
from soak._hostile.users import Canaries
from soak._hostile.values import Lexicon

CASES = 50
MEMORY_MB_MAX = 1000
TARGETS = ("server", "server", "scheduler", "controllers", "node", "node", "driver")


@dataclass(frozen=True)
class Size:
    """How large a case is."""

    requests: int = 20_000
    kills: int = 14
    check_every: int = 4_000  # requests
    pod_every_s: float = 1.0


@dataclass
class Record:
    """What all cases together have seen."""

    findings: list[str] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    pods_s: list[float] = field(default_factory=list)
    peaks_mb: Counter[str] = field(default_factory=Counter)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    attacking_s: float = 0.0
    client_s: float = 0.0  # of the processor
    server_s: float = 0.0


@dataclass
class HostileCase:
    """One cluster under attack."""

    seed: int
    number: int
    size: Size
    record: Record
    kept: str = ""

    def outcomes(self) -> Counter[str]:
        """Return the counts; broken laws are in the record."""
        folder = Path(tempfile.mkdtemp(prefix="h", dir="/tmp"))  # sockets need short paths
        again = f"python3 dev.py soak hostile --seed {self.seed} --case {self.number}"
        findings = Findings(folder, again)
        try:
            counts = asyncio.run(self._run(folder, findings))
        except BaseException:
            self.kept = str(folder)
            raise
        finally:
            if findings.texts:
                self.kept = str(folder)
            if not self.kept:
                shutil.rmtree(folder)
            self.record.findings += [f"{text}\n{self}" for text in findings.texts.values()]
        return counts

    async def _run(self, folder: Path, findings: Findings) -> Counter[str]:
        random = Random(f"{self.seed}/{self.number}")  # noqa: S311
        site = HostileSite(folder, random)
        try:
            await site.start()
            return await self._attack(site, findings, random)
        finally:
            site.stop()

    async def _attack(self, site: HostileSite, findings: Findings, random: Random) -> Counter[str]:
        canaries = Canaries(random)
        cleaner = Cleaner(site, canaries, findings)
        users = await cleaner.prepare(random)
        grammar = Grammar(Lexicon(f"{site.folder}/1/outside", str(site.free)))
        requests = Requests(Bodies(grammar), users)
        attackers = Attackers(site, requests, AnswerLaws(canaries, findings), findings)
        quiet = Quiet(site, findings, random, attackers.in_flight)
        await quiet.prepare(cleaner.admin)
        await cleaner.remember()
        before = site.surroundings()
        beside = [
            asyncio.create_task(quiet.work()),
            asyncio.create_task(quiet.run_pods(self.size.pod_every_s)),
            asyncio.create_task(self._kill(site, attackers, random)),
            asyncio.create_task(self._check(site, attackers, cleaner, requests, quiet)),
        ]
        began, used_s = time.monotonic(), time.process_time()
        server_s = site.all_processor_s()
        attacking = asyncio.create_task(
            attackers.run(self.size.requests, f"{self.seed}/{self.number}")
        )
        try:
            await asyncio.wait((attacking, *beside), return_when=asyncio.FIRST_COMPLETED)
            self.record.attacking_s += time.monotonic() - began
            self.record.client_s += time.process_time() - used_s
            self.record.server_s += site.all_processor_s() - server_s
            for task in (attacking, *beside):
                if task.done():
                    task.result()  # raises what went wrong
            await attacking
        finally:
            for task in (attacking, *beside):
                task.cancel()
            await asyncio.gather(attacking, *beside, return_exceptions=True)
        await site.settle()
        await cleaner.reconnect()
        await quiet.run_pod(1_000_000)  # after all, everything still works
        await cleaner.check(quiet)
        after = site.surroundings()
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                findings.note("files", f"{path}: was {before.get(path)}, is {after.get(path)}")
        await cleaner.close()
        return self._counted(site, attackers, quiet)

    async def _kill(self, site: HostileSite, attackers: Attackers, random: Random) -> None:
        """Kill a program whenever so many requests were sent."""
        moments = sorted(random.randrange(self.size.requests) for _ in range(self.size.kills))
        for moment in moments:
            while attackers.sent < moment:
                await asyncio.sleep(random.random() * 0.02)
            await site.kill(random.choice(TARGETS))
        await asyncio.Event().wait()

    async def _check(
        self,
        site: HostileSite,
        attackers: Attackers,
        cleaner: Cleaner,
        requests: Requests,
        quiet: Quiet,
    ) -> None:
        """Check the state of everything now and then, and remove what has gathered."""
        next_check = self.size.check_every
        while True:
            await asyncio.sleep(0.2)
            self._check_memory(site, cleaner.findings)
            if attackers.sent >= next_check:
                next_check += self.size.check_every
                await cleaner.check(quiet)
                await cleaner.clean(requests)

    def _check_memory(self, site: HostileSite, findings: Findings) -> None:
        for name, (now_mb, peak_mb) in site.memory_mb().items():
            self.record.peaks_mb[name] = max(self.record.peaks_mb[name], peak_mb)
            if now_mb > MEMORY_MB_MAX:
                findings.note("memory", f"{name} has {now_mb} MB")

    def _counted(self, site: HostileSite, attackers: Attackers, quiet: Quiet) -> Counter[str]:
        counts = Counter({"requests": attackers.sent}) + attackers.counts
        counts["kills"] = site.kills.total()
        counts.update({f"kills of the {name}": count for name, count in site.kills.items()})
        counts["quiet requests"] = len(quiet.latencies_s)
        counts["answers late by the machine"] = quiet.lost_machine
        counts["good pods"] = len(quiet.pods_s)
        counts["bytes of logs"] = site.log_bytes()
        self.record.latencies_s += quiet.latencies_s
        self.record.pods_s += quiet.pods_s
        for took_s, _, attack in attackers.slowest:
            shown = f"{took_s:.2f} s {attack.user.name} {curl(attack.data, Path('-'))[:300]}"
            self.record.slowest.append((took_s, shown))
        return counts

    def __str__(self) -> str:
        return f"{self.size.requests:,} requests{f'; logs are in {self.kept}' if self.kept else ''}"


def run(plan: Plan, size: Size | None = None) -> Outcome:
    """Run the campaign."""
    record = Record()
    made = size or Size()
    tally = Tally("hostile", lambda seed, number: HostileCase(seed, number, made, record))
    started = time.monotonic()
    tally.run(plan)
    counts = tally.counts
    accepted = {name: counts.pop(name) for name in sorted(counts) if name.startswith("accepted ")}
    figures = {"cases": str(tally.cases), "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in sorted(counts.items())}
    figures["objects accepted"] = f"{sum(accepted.values()):,} of {len(accepted)} kinds"
    figures["requests per second"] = f"{counts['requests'] / max(record.attacking_s, 0.001):.0f}"
    costs_ms = (
        1e3 * each / max(counts["requests"], 1) for each in (record.client_s, record.server_s)
    )
    costs = ", ".join(f"{cost_ms:.2f} ms" for cost_ms in costs_ms)
    figures["processor per request, client, server"] = costs
    figures |= _timing_figures(record)
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, (*record.findings, *tally.faults.values()))


def _timing_figures(record: Record) -> dict[str, str]:
    latencies = sorted(record.latencies_s) or [0.0]
    pods = sorted(record.pods_s) or [0.0]
    late = sum(each > 0.1 for each in latencies)
    figures = {
        "quiet requests, p50, p99, max": " ".join(
            f"{1e3 * latencies[int(share * (len(latencies) - 1))]:.0f} ms"
            for share in (0.5, 0.99, 1)
        ),
        "quiet requests over 100 ms": f"{late:,}",
        "good pods, p50, max": f"{pods[len(pods) // 2]:.1f} s {pods[-1]:.1f} s",
        "memory at most": ", ".join(f"{name} {mb} MB" for name, mb in record.peaks_mb.items()),
    }
    for number, (_, shown) in enumerate(sorted(record.slowest, reverse=True)[:3]):
        figures[f"slowest answer {number + 1}"] = shown
    return figures
