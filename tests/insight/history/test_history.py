"""The state at a revision is the replay of the changes up to it; marks say what happened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.insight.errors import UnknownMomentError
from moorage.insight.history import Change, History, Mark, Occurrence
from moorage.insight.snapshot.snapshot import Snapshot, key_of
from tests.insight.history.changes import (
    NO_ROOM,
    at,
    change,
    claim,
    evicted,
    node,
    pod,
    refused,
    slice_of,
)

NAMES = ("a", "b", "c", "d")


def replayed(changes: list[Change]) -> Snapshot:
    """Return the state after changes, by the plainest way."""
    snapshot = Snapshot()
    for each in changes:
        gone = [value for value in snapshot.objects() if key_of(value) in each.removed]
        snapshot = snapshot.without(gone).with_objects(each.written)
    return snapshot


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    steps = draw(
        st.lists(
            st.tuples(
                st.integers(1, 3),
                st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "n", "m"])),
                st.sets(st.sampled_from(NAMES)),
            ),
            min_size=1,
            max_size=25,
        )
    )
    revision, changes = 0, []
    for ahead, written, removed in steps:
        revision += ahead
        values = [pod(name, node=where) for name, where in written.items()]
        gone = tuple(("Pod", "team", name) for name in sorted(removed - written.keys()))
        changes.append(change(revision, *values, removed=gone))
    return changes


@given(changes=histories(), distance=st.integers(1, 12))
def test_the_state_at_a_revision_is_the_replay_of_the_changes(
    changes: list[Change], distance: int
) -> None:
    history = History(changes, checkpoint_changes_min=distance)
    assert [moment.revision for moment in history.moments] == [each.revision for each in changes]
    for count, each in enumerate(changes, start=1):
        expected = replayed(changes[:count])
        assert history.snapshot(each.revision) == expected
        assert history.at(each.time).revision == each.revision
    assert history.snapshot() == replayed(changes)


def test_seeking_replays_changes_since_a_checkpoint_only(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(change(n, pod(node=str(n))) for n in range(1, 1001))
    applied: list[int] = []
    apply = Change.apply

    def counted(self: Change, state: dict[tuple[str, str, str], object]) -> None:
        applied.append(self.revision)
        apply(self, state)

    monkeypatch.setattr(Change, "apply", counted)
    (found,) = history.snapshot(990).pods
    assert found.spec.node_name == "990"
    assert 0 < len(applied) < 100


def test_a_revision_without_a_change_has_the_state_before_it() -> None:
    history = History([change(5, pod()), change(9, pod(node="a"))])
    assert history.snapshot(7) == history.snapshot(5)
    assert history.at(at(8)) == history.first


@pytest.mark.parametrize("revision", [4, 10])
def test_a_revision_that_is_not_there_is_an_error_that_says_what_is(revision: int) -> None:
    history = History([change(5, pod()), change(9)])
    with pytest.raises(UnknownMomentError, match=f"revision {revision} .* revisions 5 to 9"):
        history.snapshot(revision)
    with pytest.raises(UnknownMomentError, match=r"12:00:04Z is not in the history"):
        history.at(at(4))
    with pytest.raises(UnknownMomentError, match="empty"):
        History().snapshot()


def test_revisions_only_grow() -> None:
    with pytest.raises(UnknownMomentError, match="revision 5 does not come after 5"):
        History([change(5), change(5)])


# --- marks --------------------------------------------------------------------------------


def told(*changes: Change) -> list[str]:
    return [text(mark) for mark in History(changes).marks]


def text(mark: Mark) -> str:
    name = f"{mark.namespace}/{mark.name}" if mark.namespace else mark.name
    return f"{mark.revision} {mark.what} {mark.kind} {name} {mark.cause}".strip()


def test_a_pod_becomes_pending_and_is_scheduled() -> None:
    changes = (
        change(1),
        change(2, pod()),
        change(3, pod("web", refused())),
        change(4, pod("web", node="a")),
    )
    assert told(*changes) == [
        f"2 Pending Pod team/web Unschedulable: {NO_ROOM}",
        "4 Scheduled Pod team/web to a",
    ]


def test_a_pod_that_was_pending_before_became_so_when_it_was_created() -> None:
    (mark,) = History([change(7, pod("web", refused()))]).marks
    assert mark.time == at(-60)
    assert NO_ROOM in mark.cause


def test_an_eviction_has_the_reason_of_the_disruption() -> None:
    changes = (change(1, pod(node="a")), change(2, pod("web", evicted(), node="a")))
    assert told(*changes) == ["2 Evicted Pod team/web DeletionByDeviceTaintManager"]


def test_a_pod_that_is_created_again_under_its_name_is_pending_again() -> None:
    changes = (change(1), change(2, pod(node="a")), change(3, pod(uid="other")))
    assert told(*changes) == ["2 Scheduled Pod team/web to a", "3 Pending Pod team/web"]


def test_claims_are_allocated_and_deallocated_also_by_their_removal() -> None:
    changes = (
        change(1, claim()),
        change(2, claim("gpu-0", "gpu-1")),
        change(3, claim()),
        change(4, claim("gpu-1")),
        change(5, removed=(("ResourceClaim", "team", "gpus"),)),
    )
    assert told(*changes) == [
        "2 Allocated ResourceClaim team/gpus gpu.x/a/gpu-0, gpu.x/a/gpu-1",
        "3 Deallocated ResourceClaim team/gpus gpu.x/a/gpu-0, gpu.x/a/gpu-1",
        "4 Allocated ResourceClaim team/gpus gpu.x/a/gpu-1",
        "5 Deallocated ResourceClaim team/gpus gpu.x/a/gpu-1",
    ]


def test_taints_are_marked_once_when_they_are_added() -> None:
    changes = (
        change(1, node(), slice_of()),
        change(2, node("broken")),
        change(3, node("broken"), slice_of("hot")),
        change(4, node(), slice_of("hot")),
    )
    assert told(*changes) == [
        "2 Tainted Node a broken:NoSchedule",
        "3 Tainted Device gpu.x/a/gpu-0 hot:NoExecute",
    ]


def versioned(value: Any, version: int) -> Any:
    metadata = replace(value.metadata, resource_version=str(version))
    return replace(value, metadata=metadata)


def test_a_history_goes_on_with_a_later_one() -> None:
    web, node_a = versioned(pod(), 2), versioned(node(), 1)
    past = History([change(1, node_a), change(2, web), change(3, claim("gpu-0"))])
    later = History(
        [change(6, node_a, versioned(pod("late"), 5)), change(8, versioned(pod(node="a"), 8))]
    )
    states = {each.revision: set(map(key_of, later.snapshot(each.revision).objects()))
              for each in later.moments}  # fmt: skip
    assert past.extend(later) == 2
    assert [each.revision for each in past.moments] == [1, 2, 3, 6, 8]
    for revision, keys in states.items():
        assert set(map(key_of, past.snapshot(revision).objects())) == keys
    found = [(mark.revision, mark.what, mark.name) for mark in past.marks]
    assert (2, Occurrence.PENDING, "web") in found
    assert (6, Occurrence.DEALLOCATED, "gpus") in found
    assert (6, Occurrence.PENDING, "late") in found
    (joined,) = past.snapshot(6).nodes
    assert joined is node_a  # the same version is not written again
