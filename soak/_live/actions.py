"""What can happen to a cluster. An action is decided by its name and a number alone."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from moorage.api.core.node import Node
from moorage.api.core.pod import FAILED, SUCCEEDED, Pod
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.client.writes import Delete, Target, Update
from soak._live import pools, things

if TYPE_CHECKING:
    from soak._live.history import World

PACE_MAX = 40


class Action(NamedTuple):
    """Something that happens, and how much is let through after it."""

    name: str
    number: int
    pace: int  # requests and changes that are let through; -1: all of them

    def __str__(self) -> str:
        return f"{self.name} #{self.number}, {'then rest' if self.pace < 0 else self.pace}"


def some_actions(random: Random, length: int) -> tuple[Action, ...]:
    """Return what happens in a history."""
    names = random.choices([*ACTIONS], [weight for weight, _ in ACTIONS.values()], k=length)
    return tuple(
        Action(
            name, random.randrange(10**6), random.choice([-1, *[random.randint(0, PACE_MAX)] * 5])
        )
        for name in names
    )


def apply(world: World, action: Action) -> None:
    """Let an action happen."""
    _, do = ACTIONS[action.name]
    do(world, Random(action.number))  # noqa: S311


# --- pods ---------------------------------------------------------------------------------------


def _create_pod(world: World, random: Random) -> None:
    world.create(things.pod(random.choice(things.NAMES), random, rivalry=world.rivalry))


def _create_many(world: World, random: Random) -> None:
    number = random.randint(2, 6)
    pattern = random.randrange(10**6)
    for name in random.sample(things.NAMES, number):
        alike = Random(pattern)  # noqa: S311
        world.create(things.pod(name, alike, rivalry=world.rivalry))


def _delete_pod(world: World, random: Random) -> None:
    if (pod := world.some(Pod, random)) is not None:
        world.act(Delete(Target.of(pod)))


def _force_delete_pod(world: World, random: Random) -> None:
    if (pod := world.some(Pod, random)) is not None:
        world.act(Delete(Target.of(pod), grace_s=0))


def _finish_pod(world: World, random: Random) -> None:
    pod = world.some(Pod, random)
    if pod is not None and pod.spec.node_name:
        phase = random.choice([SUCCEEDED, FAILED])
        world.act(Update(replace(pod, status=replace(pod.status, phase=phase)), "status"))


def _create_gang(world: World, random: Random) -> None:
    number = random.randint(2, 3)
    name = random.choice(["g-0", "g-1"])
    wanted: list[dict[str, Any]] = []
    if random.random() < 0.6:
        source = random.choice(
            [{"resourceClaimTemplateName": "t-nic"}, {"resourceClaimName": "c-nic"}]
        )
        wanted = [{"name": "shared", **source}]
    own = [{"name": "own", "resourceClaimTemplateName": random.choice([*things.TEMPLATES])}]
    spec, above = _group_spec(random)
    like: dict[str, Any] = {"priority": spec["priority"]}
    if random.random() < 0.3:
        like["more"] = {"cpu": "2"}
    members = [
        things.member(each, name, [*wanted, *(own if random.random() < 0.7 else [])], **like)
        for each in random.sample(things.NAMES, number)
    ]
    made: list[Any] = [things.group(name, number, wanted, **spec), *above, *members]
    random.shuffle(made)
    for each in made:
        world.create(each)


def _group_spec(random: Random) -> tuple[dict[str, Any], list[Any]]:
    """Return what else a group says of itself, and the group above it."""
    spec: dict[str, Any] = {"priority": random.choice(things.PRIORITIES)}
    if random.random() < 0.3:
        spec["schedulingConstraints"] = {"topology": [{"key": things.ZONE}]}
    if random.random() < 0.3:
        spec["disruptionMode"] = {"all": {}}
    if random.random() < 0.7:
        return spec, []
    spec |= {"parentCompositePodGroupName": "s-0", "workloadRef": things.WORKLOAD}
    return spec, [things.composite("s-0", random.randint(1, 2), spec["priority"])]


def _delete_composite(world: World, random: Random) -> None:
    if (group := world.some(CompositePodGroup, random)) is not None:
        world.act(Delete(Target.of(group)))


def _delete_group(world: World, random: Random) -> None:
    if (group := world.some(PodGroup, random)) is not None:
        world.act(Delete(Target.of(group)))


# --- claims and templates -----------------------------------------------------------------------


def _put_claim(world: World, random: Random) -> None:
    world.create(things.claim(random.choice([*things.CLAIMS])))


def _delete_claim(world: World, random: Random) -> None:
    claim = world.some(ResourceClaim, random)
    if claim is not None:
        world.laws.note_meddled(claim)
        world.act(Delete(Target.of(claim)))


def _flip_template(world: World, random: Random) -> None:
    name = random.choice([*things.TEMPLATES])
    found = world.find(ResourceClaimTemplate, name)
    if found is None:
        world.create(things.template(name))
    elif random.random() < 0.4:
        world.act(Delete(Target.of(found)))


def _reserve_for_nobody(world: World, random: Random) -> None:
    claim = world.some(ResourceClaim, random)
    if claim is None or claim.status.allocation is None:
        return
    number = random.randrange(1000)
    nobody = ResourceClaimConsumerReference(
        resource="pods", name=random.choice(things.NAMES), uid=f"nobody-{number}"
    )
    reserved = (*claim.status.reserved_for, nobody)
    _meddle(world, replace(claim, status=replace(claim.status, reserved_for=reserved)))


def _take_reservation(world: World, random: Random) -> None:
    claim = world.some(ResourceClaim, random)
    if claim is not None and claim.status.reserved_for:
        reserved = claim.status.reserved_for[1:]
        _meddle(world, replace(claim, status=replace(claim.status, reserved_for=reserved)))


def _take_devices(world: World, random: Random) -> None:
    claim = world.some(ResourceClaim, random)
    if claim is not None and claim.status.allocation is not None:
        _meddle(world, replace(claim, status=type(claim.status)()))


def _meddle(world: World, claim: ResourceClaim) -> None:
    world.laws.note_meddled(world.find(ResourceClaim, claim.metadata.name))
    world.act(Update(claim, "status"))


# --- devices, classes, rules --------------------------------------------------------------------


def _republish(world: World, random: Random) -> None:
    """Publish a pool in a newer generation: the new slices in any order, the old ones go last."""
    driver, pool = random.choice(pools.POOLS)
    old = world.slices(driver, pool)
    generation = max((each.spec.pool.generation for each in old), default=world.generation(pool))
    world.note_generation(pool, generation + 1)
    made = pools.slices(driver, pool, generation + 1, random)
    if random.random() < 0.2:
        made = made[1:]  # incomplete, until it is published again
    for each in made:
        world.create(each)
    if random.random() < 0.8:
        for each in old:
            world.act(Delete(Target.of(each)))


def _publish_all(world: World, random: Random) -> None:
    driver, pool = random.choice(pools.POOLS)
    old = world.slices(driver, pool)
    generation = max((each.spec.pool.generation for each in old), default=world.generation(pool))
    world.note_generation(pool, generation + 1)
    for each in pools.slices(driver, pool, generation + 1, None):
        world.create(each)
    for each in old:
        world.act(Delete(Target.of(each)))


def _vanish(world: World, random: Random) -> None:
    driver, pool = random.choice(pools.POOLS)
    for each in world.slices(driver, pool):
        world.act(Delete(Target.of(each)))


def _put_rule(world: World, random: Random) -> None:
    name = random.choice(["rule-1", "rule-2"])
    found = world.find(DeviceTaintRule, name)
    if found is None:
        world.create(things.taint_rule(name, random))
    else:
        spec = things.taint_rule(name, random).spec
        world.act(Update(replace(found, spec=spec)))


def _delete_rule(world: World, random: Random) -> None:
    if (rule := world.some(DeviceTaintRule, random)) is not None:
        world.act(Delete(Target.of(rule)))


def _put_class(world: World, random: Random) -> None:
    name = random.choice(["gpu", "gpu", "nic", "mig", "fabric", "cores"])
    found = world.find(DeviceClass, name)
    made = things.device_class(name, random if random.random() < 0.3 else None)
    if found is None:
        world.create(made)
    else:
        world.act(Update(replace(found, spec=made.spec)))


def _delete_class(world: World, random: Random) -> None:
    if (found := world.some(DeviceClass, random)) is not None:
        world.act(Delete(Target.of(found)))


def _report(world: World, random: Random) -> None:
    """Let a driver say that a device is ready, or never will be."""
    world.drivers(random)


def _put_quota(world: World, random: Random) -> None:
    world.quota = things.quota(random)


def _delete_quota(world: World, random: Random) -> None:
    del random
    world.quota = None


# --- nodes --------------------------------------------------------------------------------------


def _lose_node(world: World, random: Random) -> None:
    if (node := world.some(Node, random)) is not None:
        world.act(Delete(Target.of(node)))
        for each in world.slices(pools.GPU, node.metadata.name):
            if random.random() < 0.5:
                world.act(Delete(Target.of(each)))


def _return_node(world: World, random: Random) -> None:
    for name in pools.NODES:
        if world.find(Node, name) is None and random.random() < 0.7:
            world.create(things.node(name))


def _cordon(world: World, random: Random) -> None:
    if (node := world.some(Node, random)) is not None:
        spec = replace(node.spec, unschedulable=not node.spec.unschedulable)
        world.act(Update(replace(node, spec=spec)))


# --- programs, watches, time --------------------------------------------------------------------


def _crash_scheduler(world: World, random: Random) -> None:
    kind = random.choice(["scheduler", "second scheduler"])
    world.crash(
        kind if world.rivalry == "other" else "scheduler", random, is_back=random.random() < 0.7
    )


def _crash_controllers(world: World, random: Random) -> None:
    world.crash("controllers", random, is_back=random.random() < 0.7)


def _start_second(world: World, random: Random) -> None:
    del random
    world.start_rival()


def _cut_watches(world: World, random: Random) -> None:
    world.server.cut(is_forgotten=random.random() < 0.4)


def _trouble(world: World, random: Random) -> None:
    world.server.faults = random.choice([0.0, 0.05, 0.2, 0.5])


def _pass_time(world: World, random: Random) -> None:
    world.pass_time(random.choice([0.1, 1, 5, 15, 60]))


def _jump_clock(world: World, random: Random) -> None:
    world.clock.jump(random.choice([-3600, -60, 60, 3600]))


def _do_nothing(world: World, random: Random) -> None:
    del world, random


ACTIONS: dict[str, tuple[float, Callable[[World, Random], None]]] = {
    "create pod": (8, _create_pod),
    "create pods alike": (4, _create_many),
    "delete pod": (5, _delete_pod),
    "force-delete pod": (4, _force_delete_pod),
    "finish pod": (3, _finish_pod),
    "create gang": (3, _create_gang),
    "delete group": (1, _delete_group),
    "delete composite group": (1, _delete_composite),
    "put claim": (3, _put_claim),
    "delete claim": (1, _delete_claim),
    "flip template": (1, _flip_template),
    "reserve claim for nobody": (1, _reserve_for_nobody),
    "take reservation away": (1, _take_reservation),
    "take devices away": (0.5, _take_devices),
    "republish pool": (3, _republish),
    "publish whole pool": (3, _publish_all),
    "pool vanishes": (1, _vanish),
    "put taint rule": (1.5, _put_rule),
    "delete taint rule": (1.5, _delete_rule),
    "put class": (1.5, _put_class),
    "delete class": (0.5, _delete_class),
    "report of a device": (3, _report),
    "put quota": (1, _put_quota),
    "delete quota": (1, _delete_quota),
    "lose node": (1, _lose_node),
    "return nodes": (2, _return_node),
    "cordon or not": (1, _cordon),
    "crash scheduler": (2, _crash_scheduler),
    "crash controllers": (2, _crash_controllers),
    "second scheduler": (1, _start_second),
    "cut watches": (3, _cut_watches),
    "trouble": (2, _trouble),
    "time passes": (3, _pass_time),
    "clock jumps": (0.5, _jump_clock),
    "nothing": (2, _do_nothing),
}
