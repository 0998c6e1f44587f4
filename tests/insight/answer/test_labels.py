"""Which label of a node was meant: the name decides, a prefix alone means nothing."""

from __future__ import annotations

import pytest

from moorage.insight.answer.nodes.labels import near_label

KNOWN = (
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "example.com/zone",
    "gpu-type",
)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("os", "kubernetes.io/os"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("node.kubernetes.io/instance-typ", "node.kubernetes.io/instance-type"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("exmaple.com/zone", "example.com/zone"),
        ("gputype", "gpu-type"),
        ("kubernetes.io/rack", None),
        ("topology.kubernetes.io/hall", None),
        ("team", None),
    ],
)
def test_the_name_of_a_label_tells_which_was_meant(key: str, meant: str | None) -> None:
    assert near_label(key, KNOWN) == meant
