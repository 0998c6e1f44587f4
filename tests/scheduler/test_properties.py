"""Laws of the scheduler, on random worlds."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mooring.api.core.node import Node
from mooring.api.core.pod import Pod
from mooring.scheduler import (
    Fleet,
    NodeState,
    Outlook,
    PodShape,
    Shapes,
    best,
    messages,
    prepare,
    read_facts,
    survey,
    totals,
)
from mooring.scheduler.filters import interpodaffinity, podtopologyspread
from tests.scheduler import plain
from tests.scheduler.makers import HOST, fleet, node, pod
from tests.strategies import instances

SEEDS = range(150)
KEYS = ("zone", "rack", HOST)
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"app": "web"},
    {"app": "db"},
    {"app": "web", "tier": "1"},
)
NAMESPACES = ("default", "blue", "red", "unknown")
KNOWN = {"default": {}, "blue": {"team": "1"}, "red": {"team": "2"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

# What the two rules say, in the words of the plain ones.
SAID = {
    "node(s) didn't match pod affinity rules": "near",
    "node(s) didn't match pod anti-affinity rules": "apart",
    "node(s) didn't satisfy existing pods anti-affinity rules": "repelled",
    "node(s) didn't match pod topology spread constraints": "uneven",
    "node(s) didn't match pod topology spread constraints (missing required label)": "no domain",
}


# --- random worlds ------------------------------------------------------------------------------


def random_node(random: Random, name: str) -> Node:
    labels = {HOST: name} if random.random() < 0.9 else {}
    if random.random() < 0.9:
        labels["zone"] = random.choice("ab")
    if random.random() < 0.5:
        labels["rack"] = random.choice("xyz")
    return node(name, labels=labels)


def random_selector(random: Random) -> dict[str, Any] | None:
    return random.choice(
        [
            None,
            {},
            {"matchLabels": {"app": "web"}},
            {"matchLabels": {"app": "db"}},
            {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
        ]
    )


def random_term(random: Random) -> dict[str, Any]:
    term: dict[str, Any] = {
        "topologyKey": random.choice(KEYS),
        "labelSelector": random_selector(random),
    }
    if random.random() < 0.3:
        term["namespaces"] = random.sample(NAMESPACES, 2)
    if random.random() < 0.3:
        term["namespaceSelector"] = random.choice(
            [
                {},
                {"matchLabels": {"team": "1"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            ]
        )
    return term


def random_terms(random: Random, most: int) -> list[dict[str, Any]]:
    return [random_term(random) for _ in range(random.randint(0, most))]


def random_affinity(random: Random) -> dict[str, Any]:
    def weighed() -> list[dict[str, Any]]:
        return [
            {"weight": random.randint(1, 9), "podAffinityTerm": term}
            for term in random_terms(random, 1)
        ]

    return {
        "podAffinity": {REQUIRED: random_terms(random, 1), PREFERRED: weighed()},
        "podAntiAffinity": {REQUIRED: random_terms(random, 1), PREFERRED: weighed()},
    }


def random_constraint(random: Random) -> dict[str, Any]:
    return {
        "topologyKey": random.choice(KEYS),
        "maxSkew": random.randint(1, 2),
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": random_selector(random),
        "minDomains": random.choice([None, None, 2, 3]),
        "nodeAffinityPolicy": random.choice([None, "Honor", "Ignore"]),
    }


def random_pod(random: Random, name: str) -> Pod:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if random.random() < 0.1 else {}
    return pod(
        name,
        namespace=random.choice(NAMESPACES),
        labels=random.choice(LABELS),
        metadata=leaving,
        requests={"cpu": f"{random.randint(0, 9)}m", "example.com/a": str(random.randint(0, 1))},
        ports=[random.randint(80, 9999)] if random.random() < 0.2 else [],
        affinity=random_affinity(random) if random.random() < 0.6 else None,
        topologySpreadConstraints=[random_constraint(random) for _ in range(random.randint(0, 2))],
        nodeSelector={"zone": "a"} if random.random() < 0.3 else {},
    )


def random_world(seed: int) -> tuple[Random, plain.World]:
    random = Random(seed)
    nodes = {f"n{number}": random_node(random, f"n{number}") for number in range(6)}
    placed = [
        (random_pod(random, f"p{number}"), random.choice(sorted(nodes)))
        for number in range(random.randint(0, 12))
    ]
    return random, plain.World(nodes, placed, KNOWN)


def fleet_of(world: plain.World) -> Fleet:
    return fleet(list(world.nodes.values()), world.placed, world.namespaces)


def said(made: Fleet, one: Pod) -> dict[str, str | None]:
    """Return what the rules of company and spreading say, whatever others do."""
    shape = prepare(one)
    outlook = made.outlook(shape)
    found = {}
    for name, state in made.nodes.items():
        refusal = podtopologyspread.check(shape, state, outlook)
        refusal = refusal or interpodaffinity.check(shape, state, outlook)
        found[name] = SAID[refusal.texts[0]] if refusal else None
    return found


def essence(outlook: Outlook) -> Any:
    return (
        outlook.repelled,
        outlook.near,
        outlook.apart,
        outlook.pulls,
        [(t.pods_in, t.pods_on, t.minimum) for t in (*outlook.hard, *outlook.soft)],
    )


def judged(made: Fleet, shape: PodShape) -> Any:
    """Return everything that is decided about a pod."""
    found = survey(made, shape)
    scores = totals(shape, found.fitting, made.outlook(shape))
    chosen = best(found.fitting, scores).facts.name if scores else None
    names = [state.facts.name for state in found.fitting]
    return chosen, list(zip(names, scores, strict=True)), messages.unavailable(found)


# --- laws ---------------------------------------------------------------------------------------


def test_company_and_spreading_are_what_a_walk_over_all_pods_finds() -> None:
    for seed in SEEDS:
        random, world = random_world(seed)
        one = random_pod(random, "new")
        expected = {
            name: plain.spread(one, there, world) or plain.company(one, there, world)
            for name, there in world.nodes.items()
        }
        assert said(fleet_of(world), one) == expected, seed


def test_an_outlook_that_follows_changes_is_one_that_is_made_anew() -> None:
    for seed in SEEDS:
        random, world = random_world(seed)
        made, shapes = fleet_of(world), Shapes()
        shape = shapes.of(random_pod(random, "new"))
        made.outlook(shape)
        keys = [one.metadata.uid for one, _ in world.placed]
        for step in range(12):
            if keys and random.random() < 0.5:
                made.displace(keys.pop(random.randrange(len(keys))))
            else:
                one = random_pod(random, f"q{step}")
                made.place(shapes.occupant(one), random.choice(sorted(world.nodes)))
                keys.append(one.metadata.uid)
            if random.random() < 0.5:
                assert essence(made.outlook(shape)) == essence(Outlook(shape, made.world)), seed
        assert made.outlooks_made == 1


def test_taking_a_pod_away_undoes_placing_it() -> None:
    for seed in SEEDS:
        random, world = random_world(seed)
        made, shapes = fleet_of(world), Shapes()
        nodes = dict(made.nodes)
        census = made.world.census
        before = ({n: dict(k) for n, k in census.kinds.items()}, dict(census.terms))
        counted = repr(before)
        one = shapes.occupant(random_pod(random, "new"))
        made.place(one, "n0")
        assert made.nodes["n0"] != nodes["n0"]
        made.displace(one.key)
        assert made.nodes == nodes
        assert sorted(repr((census.kinds, census.terms))) == sorted(counted)
        assert made.node_of(one.key) is None


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_node_is_the_sum_of_its_pods_whatever_their_order(data: st.DataObject) -> None:
    _, world = random_world(data.draw(st.integers(0, 10_000)))
    occupants = [Shapes().occupant(one) for one, _ in world.placed]
    empty = NodeState(read_facts(world.nodes["n0"]))
    state = empty
    for each in occupants:
        state = state.with_pod(each)
    other = empty
    for each in data.draw(st.permutations(occupants)):
        other = other.with_pod(each)
    assert other == state
    assert state.held.milli_cpu == sum(each.shape.held.milli_cpu for each in occupants)
    for each in data.draw(st.permutations(occupants)):
        state = state.without_pod(each.key)
    assert state == empty


def test_the_order_of_nodes_and_pods_is_irrelevant() -> None:
    for seed in SEEDS:
        random, world = random_world(seed)
        one = random_pod(random, "new")
        nodes, placed = list(world.nodes.values()), list(world.placed)
        random.shuffle(nodes)
        random.shuffle(placed)
        other = fleet(nodes, placed, dict(reversed(KNOWN.items())))
        assert judged(other, prepare(one)) == judged(fleet_of(world), prepare(one)), seed


def test_nodes_may_come_before_pods_or_after_changes_of_their_labels() -> None:
    for seed in SEEDS:
        random, world = random_world(seed)
        shape = prepare(random_pod(random, "new"))
        made = fleet([node(name, labels={}) for name in world.nodes], world.placed, KNOWN)
        made.outlook(shape)
        for each in world.nodes.values():
            made.put_node(each)
        assert judged(made, shape) == judged(fleet_of(world), shape), seed


@given(one=instances(Pod), there=instances(Node), other=instances(Pod))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_raises_whatever_pods_and_nodes_are(one: Pod, there: Node, other: Pod) -> None:
    made, shapes = Fleet(), Shapes()
    made.put_node(there)
    occupant = shapes.occupant(other)
    made.place(occupant, there.metadata.name)
    shape = shapes.of(one)
    found = survey(made, shape)
    assert totals(shape, found.fitting, made.outlook(shape)) is not None
    assert messages.unavailable(found, messages.preemption(found))
    made.displace(occupant.key)
    assert made.nodes[there.metadata.name] == NodeState(read_facts(there))
