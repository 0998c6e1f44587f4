"""A history: actions carried out on a control plane, and shrunk if they break a law.

world: the server, the programs that run on it, and the clock
pace: how much is let through between two actions
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any, NamedTuple

from moorage.api.core import ResourceQuota
from moorage.api.core.namespace import Namespace
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.api.timestamp import Timestamp
from moorage.client.errors import ClientError
from moorage.client.writes import Create, Delete, Target, Update
from moorage.cluster.programs import ControllerProgram, ProgramContext, SchedulerProgram
from moorage.controllers.controller import WriteRefused
from moorage.kit.clock import ManualClock
from moorage.scheduler.live import Backoff, SchedulerConfig
from moorage.scheduler.plugins.registry import Profile
from moorage.scheduler.pod_signature import PodReading
from moorage.scheduler.reservation import IdSource
from soak._live import drivers, pools, things
from soak._live.actions import Action, apply
from soak._live.laws import Laws, allows
from soak._live.quotas import check_quota
from soak._live.server import Sent, Server, SimClient
from soak._live.turnstile import play

NEVER_S = 1e9
SAME, OTHER = "same", "other"
SECOND = "second scheduler"
SCHEDULERS = {"scheduler": things.SCHEDULERS[0], SECOND: things.SCHEDULERS[1]}
QUIET_S = 90.0  # nothing is written for this long: it is at rest
REST_S_MAX = 6 * 3600.0
STEPS_MAX = 60_000
LOGGED_MAX = 20  # how often one text is logged in a history, with all restarts
BINDING_TIMEOUT_S = 30.0
BROKEN_PART = 0.2  # of the reports of devices say that they failed
TIMER_PART = 0.06  # of the steps let a timer go off although there is other work
USED: frozenset[type[Any]] = frozenset(
    (
        Namespace,
        Node,
        Pod,
        CompositePodGroup,
        PodGroup,
        DeviceClass,
        DeviceTaintRule,
        ResourceClaim,
        ResourceClaimTemplate,
        ResourceSlice,
    )
)

NAMESPACED = (Pod, PodGroup, CompositePodGroup, ResourceClaim, ResourceClaimTemplate)


class Program(NamedTuple):
    """A program that runs."""

    kind: str
    client: SimClient
    task: asyncio.Task[None]


class Broken(Exception):  # noqa: N818
    """A law is broken."""


class World:
    """A control plane."""

    def __init__(self, seed: str, *, rivalry: str) -> None:
        self.random = Random(seed)  # noqa: S311
        self.rivalry = rivalry  # SAME, OTHER, or empty for one scheduler alone
        self.clock = ManualClock()
        self.server = Server(self.random, self.clock, USED)
        self.server.model.allows = allows
        self.server.model.admits = self._admits
        self.quota: ResourceQuota | None = None
        self.laws = Laws(self.server.model.objects)
        self.server.checks.append(self.laws.check)
        self.programs: list[Program] = []
        self.counts: Counter[str] = Counter()
        self._doomed: list[tuple[str, bool]] = []  # killed once a write of theirs is under way
        self._names = count(1)
        self._generations: dict[str, int] = {}
        self._fresh = IdSource(
            lambda: f"share-{next(self._names)}", lambda prefix: f"{prefix}x{next(self._names)}"
        )

    # --- what actions use -----------------------------------------------------------------------

    def find(self, struct: type[Any], name: str) -> Any:
        """Return an object, or None."""
        namespaced = struct in NAMESPACED
        return self.server.model.get(struct, "default" if namespaced else "", name)

    def some(self, struct: type[Any], random: Random) -> Any:
        """Return one of the objects of a kind, or None."""
        found = sorted(self.server.model.objects.list(struct), key=lambda each: each.metadata.name)
        return random.choice(found) if found else None

    def slices(self, driver: str, pool: str) -> list[ResourceSlice]:
        """Return the slices of a pool."""
        return [
            each
            for each in self.server.model.objects.list(ResourceSlice)
            if (each.spec.driver, each.spec.pool.name) == (driver, pool)
        ]

    def generation(self, pool: str) -> int:
        """Return the newest generation of a pool that there ever was."""
        return self._generations.get(pool, 0)

    def note_generation(self, pool: str, generation: int) -> None:
        """Note the newest generation of a pool."""
        self._generations[pool] = generation

    def act(self, sent: Sent) -> None:
        """Write as someone outside; that it is refused is no matter."""
        try:
            self.server.act(sent)
        except ClientError:
            self.counts["refused actions"] += 1

    def create(self, value: Any) -> None:
        """Create an object as someone outside."""
        self.act(Create(value))

    def start_rival(self) -> None:
        """Start a second scheduler in histories that have one: for the same pods, or for others."""
        if self.rivalry == SAME:
            self.start("scheduler", most=2)
        elif self.rivalry == OTHER:
            self.start(SECOND)

    def start(self, kind: str, *, most: int = 1) -> None:
        """Start a program, unless that many of its kind run."""
        running = sum(each.kind == kind for each in self.programs)
        if running >= most:
            return
        if running or kind == SECOND:
            self.laws.is_strict = False
            self.counts["second schedulers"] += 1
        if running:
            self.laws.is_fair = False
        client = SimClient(self.server, kind)
        around = ProgramContext(clock=self.clock, random=self.random.random, fresh=self._fresh)
        program: SchedulerProgram | ControllerProgram
        if kind in SCHEDULERS:
            # Nothing is tried only because it waited long: what can help it must wake it.
            backoff = Backoff(parked_most_s=NEVER_S)
            config = SchedulerConfig(
                (
                    Profile(
                        PodReading(SCHEDULERS[kind]),
                        filter_timeout_s=0.0,
                        binding_timeout_s=BINDING_TIMEOUT_S,
                    ),
                ),
                backoff=backoff,
                reports_composites=True,
            )
            program = SchedulerProgram(client, around, config=config)
        else:
            program = ControllerProgram(client, around)
        task = asyncio.get_running_loop().create_task(program.run())
        self.programs.append(Program(kind, client, task))

    def crash(self, kind: str, random: Random, *, is_back: bool) -> None:
        """Kill a program, now or at its next write."""
        if random.random() < 0.3:
            self._kill(kind, random.choice, is_back=is_back)
        else:
            self._doomed.append((kind, is_back))

    def _kill(
        self, kind: str, choose: Callable[[Sequence[Program]], Program], *, is_back: bool
    ) -> None:
        """Kill a program, which loses all that it knows; some of its writes are on their way."""
        found = [each for each in self.programs if each.kind == kind]
        if found:
            program = choose(found)
            self.programs.remove(program)
            program.task.cancel()
            self.server.bury(program.client)
            if any(each.client is program.client for each in self.server.requests):
                # As if there were two for a moment, for the same pods.
                self.laws.is_strict = self.laws.is_fair = False
            self.counts["crashes"] += 1
        if is_back:
            self.start(kind)

    def _kill_doomed(self) -> None:
        """Kill a program that was to be killed while it writes."""
        writing = [each.client for each in self.server.requests if each.sent is not None]
        for kind, is_back in self._doomed:
            if any(each.kind == kind and each.client in writing for each in self.programs):
                self._doomed.remove((kind, is_back))
                self._kill(kind, lambda found: _first_of(found, writing), is_back=is_back)
                return

    def pass_time(self, seconds: float) -> None:
        """Let time pass, whatever waits for an answer."""
        end_s = self.clock.monotonic() + seconds
        while (next_s := self.clock.next_s) is not None and next_s <= end_s:
            self.clock.skip()

    # --- going on -------------------------------------------------------------------------------

    def kubelets(self) -> bool:
        """Let a kubelet stop a pod that is to go; False if there is none."""
        for pod in list(self.server.model.objects.list(Pod)):
            node = pod.spec.node_name
            if pod.metadata.deletion_timestamp is not None and self.find(Node, node) is not None:
                self.act(Delete(Target.of(pod), grace_s=0))
                return True
        return False

    def drivers(self, random: Random | None = None) -> bool:
        """Let a driver report a device that is waited for: ready, or by chance failed.

        False if none is waited for.
        """
        for claim in sorted(self.server.model.objects.list(ResourceClaim), key=_name_of):
            if drivers.is_waited_for(claim):
                is_broken = random is not None and random.random() < BROKEN_PART
                self.counts["devices that failed"] += is_broken
                self.counts["devices that got ready"] += not is_broken
                now = Timestamp(self.clock.now()).truncated()
                self.act(Update(drivers.reported(claim, now, is_broken=is_broken), "status"))
                return True
        return False

    def _admits(self, value: Any) -> WriteRefused | None:
        refused = check_quota(self.quota, value, self.server.model)
        self.counts["refused by quota"] += refused is not None
        return refused

    def go(self, steps: int) -> Iterator[None]:
        """Let some requests and changes through, and sometimes time pass."""
        for _ in range(steps):
            chance = self.random.random()
            if chance < TIMER_PART:
                self.clock.skip()
            elif chance < 2 * TIMER_PART:
                self.kubelets()
            elif chance < 2.5 * TIMER_PART:
                self.drivers(self.random)
            elif not self.server.serve():
                self.clock.skip()
            yield
            self._kill_doomed()
            self._check_programs()

    def rest(self) -> Iterator[None]:
        """Let everything run, without failures, until nothing is written for a while."""
        yield  # what time has brought is done first
        faults, self.server.faults = self.server.faults, 0.0
        written, since_s = self._written, self.clock.monotonic()
        end_s = since_s + REST_S_MAX
        for _ in range(STEPS_MAX):
            if self._written != written:
                written, since_s = self._written, self.clock.monotonic()
            if not (self.server.serve() or self.kubelets() or self.drivers()):
                next_s = self.clock.next_s
                if next_s is None or next_s > since_s + QUIET_S:
                    self.server.faults = faults
                    return
                self.clock.skip()
            yield
            self._check_programs()
            if self.clock.monotonic() > end_s:
                break
        raise Broken("it does not come to rest")

    @property
    def _written(self) -> int:
        # Pods whose claims a quota refuses are tried again and again, as in Kubernetes: in turns
        # they say that the quota, and that others who try have the devices. So do groups beside
        # them, which are woken whenever such a pod gives its devices back.
        return self.server.model.revision if self.quota is None else self.server.moved

    def _check_programs(self) -> None:
        for each in self.programs:
            if each.task.done():
                raise Broken(f"{each.kind} ended: {each.task.exception()!r}")


def _name_of(value: Any) -> str:
    return str(value.metadata.name)


def _first_of(programs: Sequence[Program], clients: list[SimClient]) -> Program:
    return next(each for each in programs if each.client in clients)


class Result(NamedTuple):
    """The steps of a history, and the broken law, if any."""

    counts: Counter[str]
    broken: str = ""


def run(seed: str, actions: Sequence[Action], *, rivalry: str) -> Result:
    """Carry out a history."""
    world = World(seed, rivalry=rivalry)
    with _Listening() as listening:
        try:
            play(lambda: _story(world, actions))
        except (AssertionError, Broken) as error:
            return Result(world.counts, f"{type(error).__name__}: {error}")
    counts = world.counts + world.server.counts + world.laws.counts
    counts["warnings"] = listening.warnings.total()
    if listening.errors:
        return Result(counts, f"logged: {listening.errors[0]}")
    for message, number in listening.warnings.most_common(1):
        if number > LOGGED_MAX:
            return Result(counts, f"logged {number} times: {message}")
    return Result(counts)


def _story(world: World, actions: Sequence[Action]) -> Iterator[None]:
    _furnish(world)
    world.start("scheduler")
    world.start("controllers")
    world.start_rival()
    yield
    for action in actions:
        apply(world, action)
        world.counts["actions"] += 1
        if action.pace < 0:
            yield from _rest(world)
        else:
            yield from world.go(action.pace)
    yield from _rest(world)
    yield from _end(world)


def _rest(world: World) -> Iterator[None]:
    """Let all programs run, come to rest, and look at what there is."""
    world.start("scheduler")
    world.start("controllers")
    if world.rivalry == OTHER:
        world.start(SECOND)  # its pods wait for it
    yield from world.rest()
    world.counts.update(world.laws.check_rest(has_quota=world.quota is not None))


def _end(world: World) -> Iterator[None]:
    """Let all pods go; then everything must be free."""
    model = world.server.model
    for name in pools.NODES:
        if world.find(Node, name) is None:
            world.create(things.node(name))
    for struct in (Pod, PodGroup, CompositePodGroup):
        for each in list(model.objects.list(struct)):
            world.act(Delete(Target.of(each)))
    yield from world.rest()
    world.laws.check_free()
    for claim in list(model.objects.list(ResourceClaim)):
        world.act(Delete(Target.of(claim)))
    yield from world.rest()
    world.laws.check_empty()


def _furnish(world: World) -> None:
    world.create(Namespace(metadata=ObjectMeta(name="default")))
    for name in pools.NODES:
        world.create(things.node(name))
    for name in things.DRIVERS:
        world.create(things.device_class(name))
    for driver, pool in pools.POOLS:
        world.note_generation(pool, 1)
        for each in pools.slices(driver, pool, 1, None):
            world.create(each)
    for name in things.TEMPLATES:
        world.create(things.template(name))
    for name in things.CLAIMS:
        world.create(things.claim(name))


class _Listening(logging.Handler):
    """Hears what programs log: an error is a bug of ours, warnings are counted."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[str] = []
        self.warnings: Counter[str] = Counter()

    def __enter__(self) -> _Listening:
        logger = logging.getLogger("moorage")
        self._was = logger.propagate
        logger.propagate = False
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger("moorage")
        logger.removeHandler(self)
        logger.propagate = self._was

    def emit(self, record: logging.LogRecord) -> None:
        """Collect log records."""
        if record.levelno >= logging.ERROR or record.exc_info:
            self.errors.append(logging.Formatter().format(record))
        else:
            self.warnings[record.getMessage()] += 1


def shrink(
    actions: Sequence[Action], is_broken: Callable[[Sequence[Action]], bool], tries_max: int = 400
) -> tuple[Action, ...]:
    """Return fewer actions that still break a law: ever smaller parts are left out."""
    kept, size, tries = tuple(actions), max(len(actions) // 2, 1), 0
    while size:
        start = 0
        while start < len(kept) and tries < tries_max:
            fewer = kept[:start] + kept[start + size :]
            tries += 1
            if is_broken(fewer):
                kept = fewer
            else:
                start += size
        size //= 2
    return kept
