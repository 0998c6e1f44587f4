"""A pytest plugin for those who write drivers; installing Mooring is enough to have it.

dra_cluster        a whole cluster, with a node that runs pods
assert_allocated   what a claim in it got
fake_kubelet       the node's half of DRA alone, with faults on demand
hardware           the sysfs of a board, as files
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Nothing of ours is imported before a test asks for it: this module is loaded by every pytest.
if TYPE_CHECKING:
    from mooring.testing.cluster import Cluster
    from mooring.testing.kubelet import FakeKubelet
    from mooring.testing.machine import FakeMachine


@contextmanager
def _extras(fixture: str) -> Iterator[None]:
    """Fail a test in one line where its fixture needs an extra that is not installed."""
    from mooring.kit.extras import MissingExtraError, remedy

    try:
        yield
    except MissingExtraError as error:
        needed = f"the {error.extra} extra: {remedy(error.extra)}"
        pytest.fail(f"{fixture} needs {needed}", pytrace=False)


@pytest.fixture
def dra_cluster() -> Iterator[Cluster]:
    """Give a cluster of its own to a test; `mooring.testing.cluster.cluster` shares one."""
    with _extras("dra_cluster"):
        from mooring.testing.cluster import cluster

    with cluster() as found:
        yield found


@pytest.fixture
def assert_allocated(dra_cluster: Cluster) -> Callable[..., Any]:
    """Give what waits for a claim to be allocated, and says why it is not as it must be."""
    return dra_cluster.assert_allocated


@pytest.fixture
def fake_kubelet() -> Iterator[FakeKubelet]:
    """Give the half of a kubelet that speaks with drivers."""
    with _extras("fake_kubelet"):
        from mooring.testing.kubelet import fake_kubelet as started

    with started() as found:
        yield found


@pytest.fixture
def hardware(tmp_path: Path) -> Callable[[str], FakeMachine]:
    """Give what writes the sysfs of a board, such as `hardware("dgx-h100")`."""

    def write(profile: str) -> FakeMachine:
        from mooring.testing.machine import machine

        return machine(tmp_path, profile)

    return write
