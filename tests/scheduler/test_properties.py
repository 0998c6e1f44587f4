"""Laws of the scheduler, on random worlds."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler.diagnosis import fit_message, preemption_message
from moorage.scheduler.framework import RankingWork
from moorage.scheduler.node_info import NodeInfo, read_facts
from moorage.scheduler.node_ranking import NodeRanking
from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.plugins import inter_pod_affinity, pod_topology_spread
from moorage.scheduler.plugins.registry import DEFAULT_PROFILE, score_nodes
from moorage.scheduler.pod_signature import PodSignature, sign
from moorage.scheduler.signature_cache import SignatureCache
from moorage.scheduler.topology_state import TopologyState
from tests.scheduler import brute_force, plain
from tests.scheduler.makers import HOST, diagnose, fleet, node, pod
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


def fleet_of(world: plain.World) -> NodeSnapshot:
    return fleet(list(world.nodes.values()), world.placed, world.namespaces)


def said(made: NodeSnapshot, one: Pod) -> dict[str, str | None]:
    """Return what the rules of company and spreading say, whatever others do."""
    signature = sign(one)
    state = made.topology_state(signature)
    found = {}
    for name, info in made.nodes.items():
        refusal = pod_topology_spread.filter_node(signature, info, state)
        refusal = refusal or inter_pod_affinity.filter_node(signature, info, state)
        found[name] = SAID[refusal.reasons[0]] if refusal else None
    return found


def essence(state: TopologyState) -> Any:
    return (
        state.existing_anti_affinity,
        state.affinity,
        state.anti_affinity,
        state.scores,
        [(t.pods_in, t.pods_on, t.minimum) for t in (*state.hard_spread, *state.soft_spread)],
    )


def judged(made: NodeSnapshot, signature: PodSignature) -> Any:
    """Return everything that is decided about a pod."""
    found = diagnose(made, signature)
    scores = score_nodes(DEFAULT_PROFILE, signature, found.feasible, made.topology_state(signature))
    chosen = NodeRanking(made, signature, RankingWork()).choose()
    names = [each.facts.name for each in found.feasible]
    where = None if chosen is None else chosen[0].facts.name
    return where, list(zip(names, scores, strict=True)), fit_message(found)


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
        made, signatures = fleet_of(world), SignatureCache()
        signature = signatures.of(random_pod(random, "new"))
        made.topology_state(signature)
        keys = [one.metadata.uid for one, _ in world.placed]
        for step in range(12):
            if keys and random.random() < 0.5:
                made.remove_pod(keys.pop(random.randrange(len(keys))))
            else:
                one = random_pod(random, f"q{step}")
                made.add_pod(signatures.pod_info(one), random.choice(sorted(world.nodes)))
                keys.append(one.metadata.uid)
            if random.random() < 0.5:
                assert essence(made.topology_state(signature)) == essence(
                    TopologyState(signature, made.inputs)
                ), seed
        assert made.states_built == 1


def test_taking_a_pod_away_undoes_placing_it() -> None:
    for seed in SEEDS:
        random, world = random_world(seed)
        made, signatures = fleet_of(world), SignatureCache()
        nodes = dict(made.nodes)
        census = made.inputs.pod_index
        before = ({n: dict(k) for n, k in census.kinds.items()}, dict(census.terms))
        counted = repr(before)
        one = signatures.pod_info(random_pod(random, "new"))
        made.add_pod(one, "n0")
        assert made.nodes["n0"] != nodes["n0"]
        made.remove_pod(one.key)
        assert made.nodes == nodes
        assert sorted(repr((census.kinds, census.terms))) == sorted(counted)
        assert made.node_of(one.key) is None


@given(st.data())
@settings(max_examples=60)
def test_a_node_is_the_sum_of_its_pods_whatever_their_order(data: st.DataObject) -> None:
    _, world = random_world(data.draw(st.integers(0, 10_000)))
    occupants = [SignatureCache().pod_info(one) for one, _ in world.placed]
    empty = NodeInfo(read_facts(world.nodes["n0"]))
    state = empty
    for each in occupants:
        state = state.with_pod(each)
    other = empty
    for each in data.draw(st.permutations(occupants)):
        other = other.with_pod(each)
    assert other == state
    assert state.requested.milli_cpu == sum(
        each.signature.requests_on_node.milli_cpu for each in occupants
    )
    for each in data.draw(st.permutations(occupants)):
        state = state.without_pod(each.key)
    assert state == empty


def test_a_ranking_that_follows_changes_finds_what_brute_force_finds() -> None:
    """Whatever a ranking remembers or skips, every node gets the status of all filters."""
    for seed in SEEDS:
        random, world = random_world(seed)
        made, signatures = fleet_of(world), SignatureCache()
        kinds = [signatures.of(pod("small", requests={"cpu": "100m"}))]
        kinds += [signatures.of(random_pod(random, f"new-{number}")) for number in range(2)]
        rankings = [NodeRanking(made, each, RankingWork()) for each in kinds]
        keys = [one.metadata.uid for one, _ in world.placed]
        for step in range(8):
            if keys and random.random() < 0.4:
                made.remove_pod(keys.pop(random.randrange(len(keys))))
            elif random.random() < 0.3:
                made.put_node(random_node(random, random.choice(sorted(world.nodes))))
            else:
                one = random_pod(random, f"q{step}")
                made.add_pod(signatures.pod_info(one), random.choice(sorted(world.nodes)))
                keys.append(one.metadata.uid)
            for signature, ranking in zip(kinds, rankings, strict=True):
                if signature.pre_filter_status is None:
                    assert ranking.diagnose() == brute_force.diagnose(made, signature), seed
                    chosen = ranking.choose()
                    where = None if chosen is None else chosen[0].facts.name
                    assert where == brute_force.best(made, signature), seed


def test_the_order_of_nodes_and_pods_is_irrelevant() -> None:
    for seed in SEEDS:
        random, world = random_world(seed)
        one = random_pod(random, "new")
        nodes, placed = list(world.nodes.values()), list(world.placed)
        random.shuffle(nodes)
        random.shuffle(placed)
        other = fleet(nodes, placed, dict(reversed(KNOWN.items())))
        assert judged(other, sign(one)) == judged(fleet_of(world), sign(one)), seed


def test_nodes_may_come_before_pods_or_after_changes_of_their_labels() -> None:
    for seed in SEEDS:
        random, world = random_world(seed)
        signature = sign(random_pod(random, "new"))
        made = fleet([node(name, labels={}) for name in world.nodes], world.placed, KNOWN)
        made.topology_state(signature)
        for each in world.nodes.values():
            made.put_node(each)
        assert judged(made, signature) == judged(fleet_of(world), signature), seed


@given(one=instances(Pod), there=instances(Node), other=instances(Pod))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_nothing_raises_whatever_pods_and_nodes_are(one: Pod, there: Node, other: Pod) -> None:
    made, signatures = NodeSnapshot(), SignatureCache()
    made.put_node(there)
    occupant = signatures.pod_info(other)
    made.add_pod(occupant, there.metadata.name)
    signature = signatures.of(one)
    found = diagnose(made, signature)
    assert (
        score_nodes(DEFAULT_PROFILE, signature, found.feasible, made.topology_state(signature))
        is not None
    )
    assert fit_message(found, preemption_message(found))
    made.remove_pod(occupant.key)
    assert made.nodes[there.metadata.name] == NodeInfo(read_facts(there))
