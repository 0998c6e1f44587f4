"""Kill the agent and the drivers of a node at any point: no device has two owners, none leaks.

A case is a cluster of real processes (`moor up`), with a node (`moor node`) and three drivers on
the SDK that keep journals of their own. Pods with claims come and go, and in each round the agent,
a driver or the shim is killed with SIGKILL: at a random time, or when a driver comes to a step that
was chosen, such as between its answer and its checkpoint. The laws are those of `soak._node.laws`;
every pod comes to something in bounded time, and checkpoints that are damaged are refused by name.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from moorage.client.client_factory import http_client, load_rest_config
from soak import Outcome, Plan, Tally
from soak._node.history import History
from soak._node.programs import Site

CASES = 10
ROUNDS = 32


@dataclass
class NodeCase:
    """A node that is killed many times."""

    seed: int
    number: int
    rounds: int
    logs: str = ""  # kept when a law was broken

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken."""
        folder = Path(tempfile.mkdtemp(prefix="n", dir="/tmp"))  # sockets need short paths
        site = Site(folder)
        try:
            counts = asyncio.run(self._run(site))
        except BaseException:
            self.logs = str(folder)
            raise
        finally:
            site.stop()
            if not self.logs:
                shutil.rmtree(folder)
        return counts

    async def _run(self, site: Site) -> Counter[str]:
        await site.start()
        random = Random(f"{self.seed}/{self.number}")  # noqa: S311
        async with http_client(load_rest_config(str(site.kubeconfig))) as client:
            history = History(site, client, random)
            await history.begin()
            await history.rounds(self.rounds)
            await history.rest()
            await history.damage()
            await history.clear()
        for each in (site.agent, *site.drivers.values()):
            assert not each.faults(), f"{each.name}: {each.faults()}"
        return history.counts

    def __str__(self) -> str:
        return f"{self.rounds} kills{f'; logs are in {self.logs}' if self.logs else ''}"


def run(plan: Plan, rounds: int = ROUNDS) -> Outcome:
    """Run the campaign."""
    tally = Tally("node", lambda seed, number: NodeCase(seed, number, rounds))
    started = time.monotonic()
    tally.run(plan)
    figures = {"cases": str(tally.cases), "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in sorted(tally.counts.items())}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
