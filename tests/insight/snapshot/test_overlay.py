"""Manifests replace objects of the cluster, except those with a node or devices."""

from __future__ import annotations

from moorage.insight.snapshot.snapshot import overlay
from tests.insight.snapshot.test_builder import CLAIM, HELD, POD, intake


def test_a_pod_with_a_node_stays_as_it_is() -> None:
    stored = POD.replace("name: web}", "name: web, uid: u}") + "  nodeName: n\n"
    cluster, manifests = intake(stored).snapshot(), intake(POD).snapshot()
    taken, concerns = overlay(cluster, manifests)
    assert taken.pods == cluster.pods
    assert str(concerns[0]) == (
        "left as it is in the cluster: Pod default/web: "
        "what has a node or devices is not changed by applying a file"
    )


def test_a_pending_pod_is_made_anew() -> None:
    cluster = intake(POD.replace("name: web}", "name: web, uid: u}")).snapshot()
    manifests = intake(POD).snapshot()
    assert overlay(cluster, manifests) == (manifests, [])


def test_a_claim_with_devices_stays_as_it_is() -> None:
    cluster = intake(CLAIM + HELD).snapshot()
    taken, _ = overlay(cluster, intake(CLAIM).snapshot())
    assert taken.claims == cluster.claims


def test_what_is_replaced_keeps_uid_and_status() -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n%s}\n"
    cluster = intake(node % ", uid: u" + "status: {capacity: {cpu: 4}}\n").snapshot()
    taken, _ = overlay(cluster, intake(node % ", labels: {a: b}").snapshot())
    (found,) = taken.nodes
    assert (found.metadata.uid, found.metadata.labels) == ("u", {"a": "b"})
    assert str(found.status.allocatable["cpu"]) == "4"
