"""The number that fits equals the number a plan places, and one more node never lowers it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.claims.pod_claims import ClaimFeatures
from moorage.insight.fit.limits import Limit, fullness_alike, fullness_of, grouped, limits_of
from moorage.insight.fit.node_kinds import nodes_by_kind
from moorage.insight.fit.replicas import Model, ReplicaFiller, Replicas, asked_of, model_of
from moorage.insight.plan.planner import plan, plan_completed, unwatched
from moorage.insight.snapshot.completion import complete
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.scheduler.scheduling_cycle import Attempt
from tests.insight.fit.scenes import CONTEXT, NUMA, fitted, gpus, template, using
from tests.scheduler.makers import HOST, node
from tests.scheduler.scenes import claim, device_class, slice_of, wanting

NAMES = "abcd"
law = settings(max_examples=60)


@st.composite
def nodes_with_gpus(draw: st.DrawFn, names: str = NAMES) -> list[Any]:
    """Return some nodes, each with GPUs on NUMA nodes, of which some are taken."""
    found: list[Any] = []
    for name in names[: draw(st.integers(0, len(names)))]:
        cpu, pods = draw(st.sampled_from("248")), draw(st.sampled_from(["2", "110"]))
        found.append(node(name, allocatable={"cpu": cpu, "memory": "8Gi", "pods": pods}))
        numa = draw(st.lists(st.integers(0, 1), max_size=6))
        found.append(gpus(name, numa))
        is_taken: bool = draw(st.booleans())
        if numa and is_taken:
            found.append(claim(f"taken-{name}", has=[(name, "gpu-0")]))
    return found


counts = st.integers(1, 3)
constraints = st.sampled_from([(), ({"matchAttribute": NUMA},), ({"distinctAttribute": NUMA},)])
subjects = st.builds(
    lambda cpu: using("gpus", requests={"cpu": cpu} if cpu else {}),
    st.sampled_from([None, "1", "3"]),
)

LABELS = {"app": "train"}
COMPANY = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": HOST}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WAYS: list[dict[str, Any]] = [
    {},
    {
        "topologySpreadConstraints": [
            {**COMPANY, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        ]
    },
    {"affinity": {"podAntiAffinity": {REQUIRED: [COMPANY]}}},
    {"affinity": {"podAffinity": {REQUIRED: [COMPANY]}}},
]
sociable = st.sampled_from(WAYS).map(lambda spec: using("gpus", labels=LABELS, **spec))


@st.composite
def templates(draw: st.DrawFn) -> Any:
    requests = [wanting(draw(counts), name="first")]
    if draw(st.booleans()):
        requests.append(wanting(draw(counts), name="second"))
    return template(*requests, constraints=draw(constraints))


def replicas(subject: Pod, number: int) -> list[Pod]:
    found = []
    for index in range(number):
        name = f"replica-{index}"
        metadata = replace(subject.metadata, name=name, uid=name)
        found.append(replace(subject, metadata=metadata))
    return found


def planned(number: int, subject: Pod, *around: Any) -> int:
    snapshot = Snapshot.of([device_class(), *around, *replicas(subject, number)])
    return len(plan(snapshot, CONTEXT).placed)


@law
@given(nodes_with_gpus(), templates(), subjects | sociable)
def test_as_many_fit_as_a_plan_places(around: list[Any], wanted: Any, subject: Pod) -> None:
    found = fitted(subject, wanted, *around)
    assert planned(found.total, subject, wanted, *around) == found.total
    assert planned(found.total + 2, subject, wanted, *around) == found.total


@law
@given(nodes_with_gpus(), templates(), subjects)
def test_no_bound_is_below_what_fits(around: list[Any], wanted: Any, subject: Pod) -> None:
    found = fitted(subject, wanted, *around, with_levers=False)
    assert found.bound is None or found.total <= found.bound


@law
@given(nodes_with_gpus(), nodes_with_gpus("yz"), templates(), subjects)
def test_one_more_node_never_lowers_it(
    around: list[Any], more: list[Any], wanted: Any, subject: Pod
) -> None:
    before = fitted(subject, wanted, *around, with_levers=False)
    after = fitted(subject, wanted, *around, *more, with_levers=False)
    assert after.total >= before.total


@law
@given(nodes_with_gpus(), templates(), subjects)
def test_every_node_has_a_limit_and_every_replica_a_node(
    around: list[Any], wanted: Any, subject: Pod
) -> None:
    found = fitted(subject, wanted, *around, with_levers=False)
    limited = [name for limit in found.limits for name in limit.nodes]
    assert len(limited) == len(set(limited)) == found.nodes
    assert sum(place.replicas for place in found.places) == found.total
    assert sum(limit.replicas for limit in found.limits) == found.total


@law
@given(nodes_with_gpus(), templates(), subjects)
def test_every_lever_raises_the_number(around: list[Any], wanted: Any, subject: Pod) -> None:
    found = fitted(subject, wanted, *around)
    assert all(lever.total > found.total for lever in found.levers)
    assert all(lever.total <= found.total for lever in found.futile)
    without = f"without the constraint on {NUMA}"
    for lever in found.levers:
        if lever.text == without:
            requests = wanted.spec.spec.devices.requests
            free = replace(wanted.spec.spec.devices, constraints=(), requests=requests)
            loose = replace(
                wanted, spec=replace(wanted.spec, spec=replace(wanted.spec.spec, devices=free))
            )
            assert fitted(subject, loose, *around, with_levers=False).total == lever.total


def filler_of(subject: Pod, around: list[Any]) -> ReplicaFiller:
    snapshot = Snapshot.of([device_class(), *around, subject])
    model = model_of(subject, snapshot, CONTEXT)
    assert isinstance(model, Model)
    completed = complete(snapshot, CONTEXT)
    left_out = asked_of(subject, completed.snapshot).waiting
    cluster = plan_completed(completed, CONTEXT, left_out=left_out).cluster
    return ReplicaFiller(cluster, Replicas(model, Snapshot(), ClaimFeatures.of(CONTEXT.gates)))


def filled(
    subject: Pod, around: list[Any], *, in_any_order: bool
) -> tuple[dict[str, int], list[Limit]]:
    """Return how many replicas each node takes, and why it takes no more."""
    filler = filler_of(subject, around)
    filler.run(1_000, unwatched, in_any_order=in_any_order)
    assert filler.refused is not None
    taken = Counter(each.node for each in filler.placed)
    return dict(taken), limits_of(filler.refused, fullness_of(filler.refused), taken)


def on_all_nodes(published: Any) -> Any:
    return replace(published, spec=replace(published.spec, node_name=None, all_nodes=True))


@law
@given(nodes_with_gpus(), templates(), subjects | sociable, st.booleans())
def test_in_any_order_each_node_takes_as_many(
    around: list[Any], wanted: Any, subject: Pod, is_shared: bool
) -> None:
    shared = [on_all_nodes(gpus("shared", [0, 1, 1]))] if is_shared else []
    around = [wanted, *around, *shared]
    assert filled(subject, around, in_any_order=True) == filled(subject, around, in_any_order=False)


@st.composite
def equal_nodes(draw: st.DrawFn) -> list[Any]:
    """Return nodes of which some differ in their names only."""
    found: list[Any] = []
    for names in ("abc", "de", "f"):
        cpu = draw(st.sampled_from("248"))
        numa = draw(st.lists(st.integers(0, 1), max_size=5))
        taken = draw(st.sampled_from(["", "ad", "abcdef"]))
        taint = draw(st.sampled_from([[], [{"key": "worn", "effect": "NoSchedule"}]]))
        for name in names:
            labels = draw(st.sampled_from([{}, {"zone": name}]))
            found.append(node(name, labels=labels, allocatable={"cpu": cpu, "pods": "9"}))
            devices = [
                {
                    "name": f"gpu-{number}",
                    "attributes": {"numa": {"int": each}, "uuid": {"string": f"{name}-{number}"}},
                    "taints": taint if number == 1 else [],
                }
                for number, each in enumerate(numa)
            ]
            found.append(slice_of(name, listed=devices))
            if numa and name in taken:
                found.append(claim(f"taken-{name}", has=[(name, "gpu-0")]))
    return found


def tried(
    subject: Pod, around: list[Any], replicas_max: int, *, by_kinds: bool
) -> tuple[int, Limit | None]:
    """Return how many replicas fit in any order, and what then stops the most."""
    filler = filler_of(subject, around)
    found = filler.run_kinds(replicas_max, unwatched) if by_kinds else None
    if found is not None:
        total = sum(found.counts.values())
        if total >= replicas_max:
            return replicas_max, None
        return total, grouped(
            fullness_alike(found.ready, found.rejections, found.filled), found.counts
        )[0]
    filler.run(replicas_max, unwatched, in_any_order=True)
    taken = Counter(each.node for each in filler.placed)
    if filler.refused is None:
        return len(filler.placed), None
    return len(filler.placed), limits_of(filler.refused, fullness_of(filler.refused), taken)[0]


SELECTED = subjects | sociable | st.just(using("gpus", nodeSelector={"zone": "b"}))


@settings(max_examples=200)
@given(equal_nodes(), templates(), SELECTED, st.sampled_from([1, 3, 8, 1_000]))
def test_one_node_of_each_kind_says_as_much_as_all(
    around: list[Any], wanted: Any, subject: Pod, replicas_max: int
) -> None:
    around = [wanted, *around]
    by_kinds = tried(subject, around, replicas_max, by_kinds=True)
    assert by_kinds == tried(subject, around, replicas_max, by_kinds=False)


@settings(max_examples=200)
@given(equal_nodes(), templates(), subjects)
def test_nodes_of_a_kind_take_as_many(around: list[Any], wanted: Any, subject: Pod) -> None:
    filler = filler_of(subject, [wanted, *around])
    ready = filler.ask()
    assert isinstance(ready, Attempt)
    kinds = nodes_by_kind(ready)
    assert kinds is not None
    filler.run(1_000, unwatched)
    taken = Counter(each.node for each in filler.placed)
    assert all(len({taken[name] for name in names}) == 1 for names in kinds)


def test_of_equal_nodes_one_is_asked_for_each_replica() -> None:
    names = [f"node-{number:03d}" for number in range(200)]
    around = [template(wanting(1)), *map(node, names), *(gpus(name, [0] * 4) for name in names)]
    for replicas_max in (500, 800, 900):
        filler = filler_of(using("gpus"), around)
        found = filler.run_kinds(replicas_max, unwatched)
        assert found is not None
        assert sum(found.counts.values()) == 800
        assert filler.cluster.work.nodes_asked <= 6  # four replicas, and one that does not fit


def test_a_device_with_another_value_makes_another_kind() -> None:
    around = [
        template(wanting(2), constraints=[{"matchAttribute": NUMA}]),
        *map(node, "abc"),
        *(gpus("a", [0, 1, 0, 1]), gpus("b", [0, 1, 0, 1]), gpus("c", [0, 1, 1, 1])),
    ]
    ready = filler_of(using("gpus"), around).ask()
    assert isinstance(ready, Attempt)
    assert nodes_by_kind(ready) == [["a", "b"], ["c"]]
