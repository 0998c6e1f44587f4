"""Commands give up on pods whose expressions take too long. Time is the number of evaluations."""

from __future__ import annotations

from itertools import count
from typing import Any

from moorage.insight.answer.answer import answers
from moorage.insight.plan.evaluation_limit import SIMPLER, EvaluationLimit
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.snapshot import Snapshot
from tests.insight.plan.test_plan import CONTEXT
from tests.scheduler.makers import node
from tests.scheduler.scenes import GPU, claim, device_class, slice_of, user, wanting

DEVICES = 100
TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
WORK = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, true))))"


def slow(number: int) -> dict[str, Any]:
    """Return a request with an expensive selector of its own, which no device fulfils."""
    request = wanting()
    text = f'device.attributes["{GPU}"].id != {-number} && false && {WORK}'
    request["exactly"]["selectors"] = [{"cel": {"expression": text}}]
    return request


def limit(each_s: float, all_s: float) -> EvaluationLimit:
    """Return a limit by a clock on which each evaluation takes a second."""
    return EvaluationLimit(count().__next__, each_s=each_s, all_s=all_s)


def hostile(pods: int, limit: EvaluationLimit | None) -> Plan:
    all_different = [
        {"name": f"d{number}", "attributes": {"id": {"int": number}}} for number in range(DEVICES)
    ]
    objects = [device_class(), node("n1"), slice_of("n1", listed=all_different)]
    for number in range(pods):
        objects += [claim(f"c{number}", slow(number)), user(f"p{number}", f"c{number}")]
    objects += [claim("usual"), user("usual", "usual")]
    return plan(Snapshot.of(objects), CONTEXT, limit=limit)


def evaluations(found: Plan) -> int:
    return found.cluster.inventory.compiler.meter.evaluations


def test_a_pod_is_given_up_after_its_time_and_others_are_not() -> None:
    found = hostile(2, limit(10, 1000))
    assert {each.pod.metadata.name for each in found.placed} == {"usual"}
    for each in found.pending:
        why = "timed out trying to allocate devices: expressions took"
        assert f"{why} more than 10 s" in each.reason
    assert evaluations(found) < 40
    assert evaluations(hostile(2, None)) >= 2 * DEVICES


def test_all_pods_together_have_a_limit() -> None:
    found = hostile(8, limit(10, 25))
    assert evaluations(found) < 60
    assert any("more than 25 s for all pods" in each.reason for each in found.pending)


def test_explanations_share_the_limit_and_say_so() -> None:
    found = hostile(4, limit(10, 30))
    told = [said for _, _, said in answers(found, found.pending, CONTEXT)]
    assert evaluations(found) < 60
    assert all("timed out trying to allocate devices" in each.cause for each in told)
    assert {fix.text for each in told for fix in each.fixes} == {SIMPLER}
