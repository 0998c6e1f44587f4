"""The fast path returns what the filters and scores return, or leaves it to them."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.plugins.node_resources import FAST_PATH_SCORES, fast_path
from moorage.scheduler.plugins.registry import (
    DEFAULT_PROFILE,
    active_filters,
    active_scores,
    run_filters,
    score_node,
)
from moorage.scheduler.signature_cache import SignatureCache
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
def test_the_fast_path_agrees_with_filters_and_scores(
    allocatable: dict[str, str],
    held: list[dict[str, str]],
    asked: dict[str, str],
    is_delegated: bool,
) -> None:
    snapshot, signatures = NodeSnapshot(), SignatureCache()
    snapshot.put_node(node("node-1", allocatable=allocatable))
    if is_delegated:
        snapshot.set_class_resources([EXTENDED])
    for number, requests in enumerate(held):
        snapshot.add_pod(signatures.pod_info(pod(f"held-{number}", requests=requests)), "node-1")
    signature = signatures.of(pod("new", requests=asked))
    info, state = snapshot.nodes["node-1"], snapshot.topology_state(signature)
    path = fast_path(signature, snapshot.inputs.class_resources)

    if path is None:
        assert EXTENDED in asked
        assert not is_delegated
        return
    score = path(info)
    if score is not None:
        filters = active_filters(DEFAULT_PROFILE, signature, state)
        assert filters.has_fast_path
        assert run_filters(filters.before_claims, signature, info, state) is None
        scores, plugins = active_scores(DEFAULT_PROFILE, signature, state)
        assert plugins <= FAST_PATH_SCORES
        assert score == score_node(scores, signature, info)


def test_a_plain_pod_on_a_plain_node_takes_the_fast_path() -> None:
    snapshot, signatures = NodeSnapshot(), SignatureCache()
    snapshot.put_node(node("node-1"))
    signature = signatures.of(pod("new", requests={"cpu": "1"}))
    path = fast_path(signature, ())

    assert path is not None
    assert path(snapshot.nodes["node-1"]) is not None
