"""Adding a filter: its module, its line in the registry, its test; nothing else must know it.

Whatever it reads, the fast path, remembered answers and queueing hints take it into account.
"""

from __future__ import annotations

import pytest

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler import cluster as cluster_module
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.live.queueing_hints import EVERYTHING, hints_for
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import Filter, FilterStatus, Reads, registry
from moorage.scheduler.plugins.registry import Profile
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.scheduling_cycle import Pending, Placed, schedule
from moorage.scheduler.topology_state import TopologyState
from tests.scheduler.makers import node, pod

PLUGIN = "TeamNodes"
TEAM = "example.com/team"
REJECTED = Unschedulable(PLUGIN, ("node(s) belong to another team",))


def filter_node(signature: PodSignature, info: NodeInfo, _state: TopologyState) -> FilterStatus:
    """Reject nodes of another team, and nodes with two pods of any team."""
    if signature.by_plugin[PLUGIN] != info.facts.by_plugin[PLUGIN] or len(info.pods) >= 2:
        return REJECTED
    return None


def team_of(value: Pod | Node) -> str:
    return value.metadata.annotations.get(TEAM, "")


def register(monkeypatch: pytest.MonkeyPatch, reads: Reads | None = None) -> Profile:
    made = Filter(PLUGIN, filter_node, read_pod=team_of, read_node=team_of)
    made = made if reads is None else made._replace(reads=reads)
    monkeypatch.setattr(cluster_module, "POD_READERS", {PLUGIN: team_of})
    monkeypatch.setattr(cluster_module, "NODE_READERS", {PLUGIN: team_of})
    return Profile(filters=(*registry.FILTERS[:4], made, *registry.FILTERS[4:]))


def member(name: str, team: str) -> Pod:
    return pod(name, requests={"cpu": "10m"}, metadata={"annotations": {TEAM: team}})


def two_teams(profile: Profile) -> Cluster:
    made = Cluster(profiles=(profile,))
    for name, team in (("node-a", "red"), ("node-b", "blue")):
        one = node(name)
        one.metadata.annotations[TEAM] = team
        made.put_node(one)
    return made


@pytest.mark.parametrize("reads", [None, Reads.NODE | Reads.PODS], ids=["undeclared", "declared"])
def test_a_new_filter_is_obeyed_by_pods_of_the_fast_path(
    reads: Reads | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = two_teams(register(monkeypatch, reads))
    for number in range(2):
        for team, where in (("red", "node-a"), ("blue", "node-b")):
            found = schedule(made, member(f"{team}-{number}", team))
            assert isinstance(found, Placed)
            assert found.node == where
            bound = pod(f"{team}-{number}", nodeName=where)
            made.put_pod(bound)
    full = schedule(made, member("red-2", "red"))
    assert isinstance(full, Pending)
    assert "2 node(s) belong to another team" in full.message


def test_pods_that_differ_only_in_what_a_new_filter_reads_are_not_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = two_teams(register(monkeypatch))
    assert made.signature(member("one", "red")) is not made.signature(member("two", "blue"))
    assert made.signature(member("one", "red")) is made.signature(member("three", "red"))


def test_a_pod_that_an_unknown_plugin_rejects_waits_for_any_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pending = schedule(two_teams(register(monkeypatch)), member("one", "green"))
    assert isinstance(pending, Pending)
    assert hints_for(pending).shared >= EVERYTHING
