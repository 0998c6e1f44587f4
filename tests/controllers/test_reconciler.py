"""A controller that runs with a server: queueing, conflicts, failures, its own writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator

import pytest
from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.writes import Create, Patch, RecordEvent, RequeueAfter, Target, Update
from moorage.controllers.controller import Answers, Controller, Lookup, ReconcileFailed, Step
from moorage.controllers.reconciler import CONFLICTS_MAX, EXPECTATION_WAITS_MAX
from moorage.controllers.resource_claims import PodClaimController
from moorage.kit.bulkhead import Fault
from tests.claims.parts import BY_TEMPLATE
from tests.controllers.late import Late, server_error
from tests.controllers.scenes import ALL, named_claim, pod, template

KEY = ("ns", "shared")


class Scripted(Controller):
    """Does what it is told to."""

    name = "scripted"
    kinds = (ResourceClaim,)
    workers = 2

    def __init__(self, *steps: Step) -> None:
        self.steps: Iterable[Step] = steps
        self.asked: list[Answers] = []

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        self.asked.append(answers)
        if isinstance(self.steps, Exception):
            raise self.steps
        return [step for step in self.steps if not (isinstance(step, Lookup) and step in answers)]


def late_with(*steps: Step) -> tuple[Late, Scripted]:
    controller = Scripted(*steps)
    late = Late([controller])
    late.model.put(named_claim())
    late.deliver(ResourceClaim)
    return late, controller


def labelled(number: str) -> Update:
    metadata = ObjectMeta(
        name="shared", namespace="ns", uid="uid-1", resource_version="1", labels={"n": number}
    )
    return Update(replace(named_claim(), metadata=metadata))


def test_changes_are_queued_and_planned() -> None:
    late, controller = late_with()
    assert list(late.queues[0].keys) == [KEY]
    late.work(0)
    assert len(controller.asked) == 1
    assert late.queues[0].forgotten == [KEY]


def test_a_plan_that_takes_long_is_made_once_for_many_changes() -> None:
    late, controller = late_with()

    class Slow(list[Step]):
        def __iter__(self) -> Iterator[Step]:
            late.model.now = late.model.now.after(0.01)
            return iter(())

    controller.steps = Slow()
    late.work(0)
    assert len(controller.asked) == 1
    for number in range(3):
        late.model.write(
            Patch(Target(ResourceClaim, *KEY), {"metadata": {"labels": {"n": str(number)}}})
        )
        late.deliver(ResourceClaim)
    assert not late.queues[0].keys
    assert [(key, round(delay_s, 3)) for key, delay_s in late.queues[0].later] == [(KEY, 0.2)] * 3
    controller.steps = ()
    late.queues[0].wake()
    late.work(0)
    late.model.write(Patch(Target(ResourceClaim, *KEY), {"metadata": {"labels": {"n": "3"}}}))
    late.deliver(ResourceClaim)
    assert list(late.queues[0].keys) == [KEY]  # A plan that is quick again waits no more.


def test_questions_are_asked_at_the_server() -> None:
    ask = Lookup(ResourceClaim, "ns", "other")
    late, controller = late_with(ask)
    late.work(0)
    assert controller.asked == [{}, {ask: None}]
    assert late.client.gets == 1


def test_updates_of_one_plan_follow_each_other() -> None:
    late, _ = late_with(labelled("1"), labelled("2"))
    late.work(0)
    assert late.model.get(ResourceClaim, *KEY).metadata.labels == {"n": "2"}


def test_conflict_is_planned_again() -> None:
    late, _ = late_with(labelled("1"))
    late.model.write(Patch(Target(ResourceClaim, *KEY), {"metadata": {"labels": {"n": "0"}}}))
    late.work(0)
    assert late.queues[0].limited == [KEY]
    assert late.model.get(ResourceClaim, *KEY).metadata.labels == {"n": "0"}


def test_what_is_gone_is_no_failure() -> None:
    target = Target(ResourceClaim, "ns", "gone")
    late, _ = late_with(Patch(target, {}), RecordEvent(named_claim(), "Reason", "message"))
    late.work(0)
    assert late.queues[0].forgotten == [KEY]
    assert [each.message for each in late.told] == ["message"]


def test_making_something_where_there_is_no_namespace_fails() -> None:
    late, _ = late_with(Create(named_claim("new")))
    late.client.failures.append(server_error("NotFound", 'namespaces "ns" not found'))
    late.work(0)
    assert late.queues[0].limited == [KEY]


def test_refused_question_is_a_failure_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late, controller = late_with()
    controller.steps = server_error("TooManyRequests", "busy")  # type: ignore[assignment]
    queue = late.queues[0]

    async def run() -> None:
        task = asyncio.create_task(late.running[0].run())
        while not queue.finished:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert queue.limited == [KEY]
    assert caplog.records[0].exc_info is None


def test_failure_ends_the_plan_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    late, _ = late_with(labelled("1"), RecordEvent(named_claim(), "Reason", "never"))
    late.client.failures.extend([server_error("Forbidden", "not allowed")] * 3)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            late.queues[0].add(KEY)
            late.work(0)
    assert [record.getMessage() for record in caplog.records] == [
        "scripted: ns/shared: not allowed"
    ]
    assert late.queues[0].limited == [KEY] * 3
    assert late.told == []


class Independent(Scripted):
    """Has steps that do not build on each other."""

    has_independent_steps = True


def test_independent_steps_are_carried_out_beside_one_that_is_refused() -> None:
    controller = Independent(
        labelled("1"),
        RecordEvent(named_claim(), "Reason", "never: its claim was refused"),
        Create(named_claim("new")),
        RecordEvent(named_claim("new"), "Reason", "made"),
        RequeueAfter(KEY, 7.0),
    )
    late = Late([controller])
    late.model.put(named_claim())
    late.deliver(ResourceClaim)
    late.client.failures.append(server_error("Conflict", "has been modified"))
    late.work(0)
    assert late.model.get(ResourceClaim, "ns", "new") is not None
    assert [each.message for each in late.told] == ["made"]
    assert late.queues[0].limited == [KEY]  # what was refused is planned again
    assert late.queues[0].later == [(KEY, 7.0)]


def test_of_several_refusals_the_one_that_is_no_conflict_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = Late([Independent(labelled("1"), Create(named_claim("a")), Create(named_claim("b")))])
    late.model.put(named_claim())
    late.deliver(ResourceClaim)
    refusals = [("Conflict", "modified"), ("Forbidden", "not allowed"), ("Forbidden", "nor this")]
    late.client.failures.extend(server_error(*each) for each in refusals)
    late.work(0)
    assert [each.getMessage() for each in caplog.records] == ["scripted: ns/shared: not allowed"]
    assert late.queues[0].limited == [KEY]


def test_a_conflict_that_does_not_end_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    late, _ = late_with(labelled("1"))
    for number in range(CONFLICTS_MAX + 3):
        assert bool(caplog.records) == (number >= CONFLICTS_MAX)
        late.client.failures.append(server_error("Conflict", "has been modified"))
        late.queues[0].add(KEY)
        late.work(0)
    assert [each.getMessage() for each in caplog.records] == [
        f"scripted: ns/shared: {CONFLICTS_MAX} conflicts in a row: has been modified"
    ]
    assert len(late.queues[0].limited) == CONFLICTS_MAX + 3


def test_another_cause_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    late, _ = late_with(labelled("1"))
    late.client.failures.extend(
        [server_error("Forbidden", "one"), server_error("Forbidden", "two")]
    )
    for _ in range(2):
        late.queues[0].add(KEY)
        late.work(0)
    assert len(caplog.records) == 2


def test_a_cause_with_another_made_up_name_is_the_same(caplog: pytest.LogCaptureFixture) -> None:
    metadata = ObjectMeta(generate_name="p-r-", namespace="ns")
    late, _ = late_with(Create(replace(named_claim(), metadata=metadata)))
    for name in ("p-r-abcde", "p-r-fghij"):
        message = f'resourceclaims.resource.k8s.io "{name}" is forbidden: exceeded quota: q'
        late.client.failures.append(server_error("Forbidden", message))
        late.queues[0].add(KEY)
        late.work(0)
    (record,) = caplog.records
    assert '"p-r-" is forbidden: exceeded quota: q' in record.getMessage()


def test_failed_plans_come_again_until_enough() -> None:
    late, _ = late_with(ReconcileFailed("not yet", attempts_max=3))
    for _ in range(3):
        late.queues[0].add(KEY)
        late.work(0)
    assert late.queues[0].limited == [KEY] * 2
    assert late.queues[0].forgotten == [KEY]


def test_keys_are_looked_at_again_when_the_plan_says() -> None:
    late, _ = late_with(RequeueAfter(("", "rule"), 10))
    late.work(0)
    assert late.queues[0].later == [(("", "rule"), 10)]


def test_fault_of_one_key_does_not_end_the_loop(
    caplog: pytest.LogCaptureFixture, faults: list[Fault]
) -> None:
    late, controller = late_with()
    controller.steps = ValueError("broken")  # type: ignore[assignment]
    queue = late.queues[0]

    async def run() -> None:
        task = asyncio.create_task(late.running[0].run())
        while not queue.finished:
            await asyncio.sleep(0)
        controller.steps = ()
        queue.add(KEY)
        while len(queue.finished) < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert queue.limited == [KEY]
    assert queue.forgotten == [KEY]
    assert "ValueError: broken" in caplog.text
    assert [each.place for each in faults] == ["scripted"]


# --- own writes -----------------------------------------------------------------------------------


def making() -> Late:
    """Return a world in which the claim of a pod was made, but is not seen yet."""
    late = Late([PodClaimController(ALL)])
    late.model.put(template(), pod(claims=[BY_TEMPLATE]))
    late.deliver(ResourceClaimTemplate)
    late.deliver(Pod)
    late.work(0)
    assert late.model.objects.count(ResourceClaim) == 1
    return late


def test_no_plan_is_made_before_own_writes_are_seen() -> None:
    late = making()
    late.queues[0].add(("ns", "p"))
    late.work(0)
    assert late.model.objects.count(ResourceClaim) == 1
    late.settle()
    assert late.model.objects.count(ResourceClaim) == 1
    (status,) = late.model.get(Pod, "ns", "p").status.resource_claim_statuses
    assert status.resource_claim_name.startswith("p-r-")


def test_waiting_for_own_writes_has_an_end() -> None:
    late = making()
    for _ in range(EXPECTATION_WAITS_MAX):
        late.queues[0].add(("ns", "p"))
        late.work(0)
    assert late.model.objects.count(ResourceClaim) == 1
    late.queues[0].add(("ns", "p"))
    late.work(0)
    assert late.model.objects.count(ResourceClaim) == 2, "the copy is taken as it is"
