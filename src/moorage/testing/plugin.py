"""A pytest plugin for authors of drivers; installing Moorage enables it.

dra_cluster        a whole cluster, with a node that runs pods
assert_allocated   asserts the devices of a claim in it
fake_kubelet       the DRA half of a kubelet alone, with faults on demand
hardware           the sysfs of a board, as files
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Import nothing of Moorage before a test needs it: every pytest run loads this module.
if TYPE_CHECKING:
    from moorage.testing.cluster import Cluster
    from moorage.testing.kubelet import FakeKubelet
    from moorage.testing.machine import FakeMachine


@contextmanager
def _extras(fixture: str) -> Iterator[None]:
    """Fail a test in one line if its fixture needs an extra that is not installed."""
    from moorage.kit.extras import MissingExtraError, remedy

    try:
        yield
    except MissingExtraError as error:
        needed = f"the {error.extra} extra: {remedy(error.extra)}"
        pytest.fail(f"{fixture} needs {needed}", pytrace=False)


@pytest.fixture
def dra_cluster() -> Iterator[Cluster]:
    """A cluster for one test; use `moorage.testing.cluster.cluster` to share one."""
    with _extras("dra_cluster"):
        from moorage.testing.cluster import cluster

    with cluster() as found:
        yield found


@pytest.fixture
def assert_allocated(dra_cluster: Cluster) -> Callable[..., Any]:
    """A function that waits until a claim is allocated, and asserts its devices."""
    return dra_cluster.assert_allocated


@pytest.fixture
def fake_kubelet() -> Iterator[FakeKubelet]:
    """The half of a kubelet that talks to drivers."""
    with _extras("fake_kubelet"):
        from moorage.testing.kubelet import fake_kubelet as started

    with started() as found:
        yield found


@pytest.fixture
def hardware(tmp_path: Path) -> Callable[[str], FakeMachine]:
    """A function that writes the sysfs of a board, such as `hardware("dgx-h100")`."""

    def write(profile: str) -> FakeMachine:
        from moorage.testing.machine import machine

        return machine(tmp_path, profile)

    return write
