"""Ask the page hostile questions as many users: memory returns to where it was.

One page over a fleet of a few machines, with the garbage collector off, as if it never came. A case
is a question of each of 50 users at once: too large, almost too large, nonsense, about what is not
there, expressions that are much work; some users hang up, and some may not list what a question
reads. The laws:

1. each answer is one of those that a client may expect, and no what-if is for who lacks a right;
2. after a case nothing is under way, and the collector finds next to nothing that it left;
3. after all cases the process has at most a tenth more memory than after the first.

Seed and case decide the questions; which of them are refused because others wait is up to time.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

import msgspec

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.apiserver.http.messages import JSON, Request
from moorage.hardware.catalogue import Catalogue
from moorage.kit.process_memory import release_memory
from moorage.validation.strategy import Context
from moorage.web.feed import Feed, SourceFacts
from moorage.web.page import Access, Page
from moorage.web.rights import ALL, Rights
from soak import Outcome, Plan, Tally
from soak._node.programs import resident_mb

CASES = 200
USERS = 50
GROWN_MAX = 0.10
LEFT_MAX = 100  # objects that a case makes once and for all; one answer in cycles has more
NOW = Timestamp(datetime(2026, 1, 31, 12, tzinfo=UTC))
HEADERS = {"host": "127.0.0.1:8080", "x-moor-ui": "1", "content-type": JSON}
EXPECTED = {200, 400, 403, 404, 408, 422, 429}
TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
WORK = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, {{}} || a + b > 0))))"
LIMITED = Rights((("Node", frozenset()), ("ResourceSlice", frozenset())))

Asked = tuple[str, dict[str, Any]]


def _changes(*changes: str) -> Asked:
    return "what-if", {"changes": changes}


QUESTIONS: tuple[Callable[[Random], Asked], ...] = (
    lambda _: _changes("add-profile dgx-h100-mig=1000"),
    lambda random: _changes(*[f"add-profile dgx-h100-mig={random.randint(20, 60)}"] * 3),
    lambda random: _changes(f"add-profile dgx-h100-mig={random.randint(1, 8)}"),
    lambda random: _changes(f"remove-node dgx-h100-{random.randrange(6)}"),
    lambda random: _changes(f"drain dgx-h100-{random.randrange(6)}", "add {"),
    lambda random: _changes(random.randbytes(20).decode("latin-1")),
    lambda _: ("what-if", {"fix": {"namespace": "team", "name": "wait-0", "number": 1}}),
    lambda random: ("explain", {"namespace": "team", "name": f"wait-{random.randrange(9)}"}),
    lambda random: ("cel", {"expression": f"{WORK} && {random.random()} > 0.0"}),
    lambda random: ("cel", {"expression": f"device.driver == '{random.random()}'"}),
)


def fleet() -> list[Any]:
    """Return a few machines, and pods that wait."""
    found = Catalogue().fleet("dgx-h100=4")
    pods = [Pod(metadata=ObjectMeta(name=f"wait-{n}", namespace="team")) for n in range(6)]
    return [*found.nodes, *found.slices, *found.classes, *pods]


@dataclass
class Session:
    """A page, and what memory it had."""

    runner: asyncio.Runner
    page: Page[str]
    samples_mb: list[float] = field(default_factory=list)

    def end(self) -> None:
        """Raise AssertionError if the process has much more memory than after the first case."""
        first, last = self.samples_mb[0], self.samples_mb[-1]
        assert last <= first * (1 + GROWN_MAX), f"{first:.0f} MB became {last:.0f} MB"


async def rights_of(user: str) -> Rights:
    """Return the rights of a user: every fifth may not list nodes and slices."""
    return LIMITED if int(user.removeprefix("user-")) % 5 == 0 else ALL


@contextmanager
def running() -> Iterator[Session]:
    """Serve a page for a session."""
    feed = Feed(SourceFacts("soak", "questions"), Context(gates=Gates.parse(), now=NOW))
    feed.publish(fleet(), revision=1, time=NOW)
    gc.collect()
    gc.disable()
    try:
        with asyncio.Runner() as runner:
            page = Page(feed, Access(name_of=str, rights_of=rights_of))
            try:
                yield Session(runner, page)
            finally:
                runner.run(page.close())
    finally:
        gc.enable()


@dataclass
class QuestionsCase:
    """The questions of all users."""

    session: Session
    seed: int
    number: int

    def outcomes(self) -> Counter[str]:
        """Return how many answers had each status, or raise what must not be."""
        counts = self.session.runner.run(self._ask_all())
        left = gc.collect()
        release_memory()
        self.session.samples_mb.append(resident_mb(os.getpid()))
        is_first = len(self.session.samples_mb) == 1  # which makes what stays
        assert is_first or left <= LEFT_MAX, f"{left} objects are in cycles"
        return counts

    async def _ask_all(self) -> Counter[str]:
        random = Random(f"{self.seed}/{self.number}")  # noqa: S311
        counts: Counter[str] = Counter()
        asked = [(f"user-{n}", random.choice(QUESTIONS)(random)) for n in range(USERS)]
        turns = [random.randrange(200) if random.random() < 0.2 else 0 for _ in asked]
        async with asyncio.TaskGroup() as group:
            for (user, question), patience in zip(asked, turns, strict=True):
                group.create_task(self._ask(user, question, patience, counts))
        while self.session.page.questions:
            await asyncio.sleep(0)
        return counts

    async def _ask(self, user: str, asked: Asked, patience: int, counts: Counter[str]) -> None:
        """Ask a question; with patience, hang up after so many turns of the event loop."""

        async def authenticate() -> str:
            return user

        async def gone() -> None:
            for _ in range(patience):
                await asyncio.sleep(0)

        name, body = asked
        request = Request("POST", f"/ui/{name}", {}, HEADERS, msgspec.json.encode(body))
        if patience:
            request = msgspec.structs.replace(request, gone=gone)
        answer = await self.session.page.answer(request, authenticate)
        counts[f"answers {answer.status}"] += 1
        assert answer.status in EXPECTED, f"{answer.status} to {asked}"
        if name == "what-if" and await rights_of(user) is not ALL:
            assert answer.status == 403, f"{answer.status} to {user}: {asked}"


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.monotonic()
    with running() as session:
        tally = Tally("questions", partial(QuestionsCase, session))
        tally.run(plan)
        samples = session.samples_mb
        if samples:
            tally.finish(session.end)
    figures = {"cases": f"{tally.cases:,}", "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in sorted(tally.counts.items())}
    if samples:
        figures["memory"] = (
            f"{samples[0]:.0f} MB, then {samples[-1]:.0f} MB, most {max(samples):.0f} MB"
        )
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
