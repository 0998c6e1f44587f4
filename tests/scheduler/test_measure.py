"""The measure says of a node what the filters and scores say, or leaves it to them."""

from hypothesis import given
from hypothesis import strategies as st

from mooring.scheduler import Fleet, Shapes, judge
from mooring.scheduler.filtering import checks_for
from mooring.scheduler.measure import measure_for
from mooring.scheduler.scoring import own_scores
from tests.scheduler.makers import node, pod

AMOUNTS = st.sampled_from(["0", "10m", "333m", "1", "2", "3500m"])
BYTES = st.sampled_from(["0", "100Mi", "1Gi", "1500M", "3Gi"])
EXTENDED = "example.com/gpu"
REQUESTS = st.fixed_dictionaries(
    {}, optional={"cpu": AMOUNTS, "memory": BYTES, EXTENDED: st.sampled_from(["1", "2"])}
)
NODES = st.fixed_dictionaries(
    {"pods": st.sampled_from(["1", "3", "110"])},
    optional={
        "cpu": st.sampled_from(["0", "1", "4"]),
        "memory": st.sampled_from(["0", "2Gi", "8Gi"]),
        EXTENDED: st.sampled_from(["0", "2"]),
    },
)


@given(
    allocatable=NODES,
    held=st.lists(REQUESTS, max_size=4),
    asked=REQUESTS,
    is_delegated=st.booleans(),
)
def test_a_measure_agrees_with_filters_and_scores(
    allocatable: dict[str, str],
    held: list[dict[str, str]],
    asked: dict[str, str],
    is_delegated: bool,
) -> None:
    fleet, shapes = Fleet(), Shapes()
    fleet.put_node(node("node-1", allocatable=allocatable))
    if is_delegated:
        fleet.delegate([EXTENDED])
    for number, requests in enumerate(held):
        fleet.place(shapes.occupant(pod(f"held-{number}", requests=requests)), "node-1")
    shape = shapes.of(pod("new", requests=asked))
    state, outlook = fleet.nodes["node-1"], fleet.outlook(shape)
    measure = measure_for(shape, fleet.world.delegated)

    if measure is None:
        assert EXTENDED in asked
        assert not is_delegated
        return
    score = measure(state)
    if score is not None:
        assert judge(shape, state, outlook, checks_for(shape, outlook)) is None
        assert score == sum(
            weight * own(shape, state) for weight, own in own_scores(shape, outlook)
        )


def test_a_plain_pod_on_a_plain_node_is_measured() -> None:
    fleet, shapes = Fleet(), Shapes()
    fleet.put_node(node("node-1"))
    shape = shapes.of(pod("new", requests={"cpu": "1"}))
    measure = measure_for(shape, ())

    assert measure is not None
    assert measure(fleet.nodes["node-1"]) is not None
