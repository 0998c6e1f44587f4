from __future__ import annotations

from moorage.api.resource.v1 import Device, DeviceAttribute
from moorage.insight.expressions.evaluation import (
    EvaluationReport,
    ExpressionEvaluator,
    InvalidExpression,
    MatchOutcome,
    evaluator_of,
)
from moorage.insight.expressions.published_devices import PublishedDevices
from tests.insight.fleets import GPU, NIC, compiler, device, fleet, slice_of

MODEL = f'device.attributes["{GPU}"].model'

FLEET = fleet(
    device("gpu-0", model="H200"), device("gpu-1", model="A100"), device("gpu-2", model="H200")
)


def survey(
    expression: str, found: PublishedDevices = FLEET, *, derived: bool = False
) -> EvaluationReport:
    inquiry = evaluator_of(expression, compiler(), derived=derived)
    assert isinstance(inquiry, ExpressionEvaluator), inquiry
    return EvaluationReport(inquiry, found)


def outcomes(found: EvaluationReport) -> dict[str, str]:
    return {d.name: answer.outcome.value for d, answer in found.by_device()}


def test_every_device_gets_an_answer_in_the_order_of_the_fleet() -> None:
    found = survey(f'{MODEL} == "H200"')
    assert list(outcomes(found).items()) == [
        ("gpu-0", "match"),
        ("gpu-1", "no match"),
        ("gpu-2", "match"),
    ]
    assert (found.is_good, found.is_about_values, found.caveat) == (True, False, "")


def test_cost_is_counted_and_estimated() -> None:
    found = survey(f'{MODEL} == "H200"')
    assert found.costs == (5, 5)
    assert found.evaluator.compiled.cost_max == 5


def test_no_match_is_no_good() -> None:
    assert not survey(f'{MODEL} == "B200"').is_good


def test_an_expression_of_another_type_gives_values_with_a_caveat() -> None:
    found = survey(f"{MODEL}.size()")
    assert [answer.value for _, answer in found.by_device()] == [4, 4, 4]
    assert found.is_about_values
    assert found.is_good
    assert found.caveat == "must evaluate to bool or the unknown type, not int"


def test_an_attribute_that_is_no_bool_gives_values_with_a_caveat() -> None:
    found = survey(MODEL)
    assert [answer.value for _, answer in found.by_device()] == ["H200", "A100", "H200"]
    assert found.caveat.startswith("CEL result of type string could not be converted to bool")


def test_an_attribute_that_is_a_bool_is_a_selector() -> None:
    found = survey(
        f'device.attributes["{GPU}"].healthy',
        fleet(device("a", healthy=True), device("b", healthy=False)),
    )
    assert outcomes(found) == {"a": "match", "b": "no match"}


def test_a_bool_among_other_values_is_a_value() -> None:
    found = survey(
        f'device.attributes["{GPU}"].x', fleet(device("a", x=True), device("b", x="true"))
    )
    assert outcomes(found) == {"a": "value", "b": "value"}


def test_a_derived_attribute_has_its_value() -> None:
    found = survey(f'{MODEL} + "!"', derived=True)
    assert [answer.value for _, answer in found.by_device()] == ["H200!", "A100!", "H200!"]
    assert found.is_good


def test_a_derived_attribute_that_fails_on_one_device_is_no_good() -> None:
    found = survey(
        f'device.attributes["{GPU}"].x', fleet(device("a", x=1), device("b")), derived=True
    )
    assert outcomes(found) == {"a": "value", "b": "error"}
    assert not found.is_good


def test_what_does_not_compile_is_refused_with_a_caret() -> None:
    refused = evaluator_of("device.drvier == 'x'", compiler())
    assert isinstance(refused, InvalidExpression)
    assert refused.error == (
        "compilation failed: ERROR: <input>:1:7: undefined field 'drvier'\n"
        " | device.drvier == 'x'\n"
        " | ......^"
    )


def test_a_derived_attribute_of_the_wrong_type_is_refused() -> None:
    refused = evaluator_of("1.5", compiler(), derived=True)
    assert isinstance(refused, InvalidExpression)
    assert refused.error.startswith("must evaluate to a primitive scalar")


def test_an_expression_that_may_cost_too_much_is_no_good() -> None:
    found = survey(f"{MODEL}.all(a, {MODEL}.all(b, {MODEL}.all(c, {MODEL}.all(d, a == b))))")
    assert found.caveat == "too complex, exceeds cost limit"
    assert not found.is_good


def test_devices_with_the_same_reasons_are_explained_together() -> None:
    found = survey(
        f'{MODEL} == "B200"',
        PublishedDevices(
            [
                slice_of(*(device(f"gpu-{i}", model="A100", uuid=str(i)) for i in range(5))),
                slice_of(device("nic-0"), driver=NIC),
            ]
        ),
    )
    told = [(len(e.devices), e.outcome, str(e.reasons[0])[-16:]) for e in found.explained]
    assert told == [
        (5, MatchOutcome.NO_MATCH, 'model is "A100"'.rjust(16)),
        (1, MatchOutcome.ERROR, "optional fields"[-16:].rjust(16)),
    ]


def test_a_device_that_no_expression_can_read_is_an_error() -> None:
    broken = Device(name="b", attributes={"v": DeviceAttribute(version_value="x")})
    found = survey("true", fleet(device("a"), broken))
    assert outcomes(found) == {"a": "match", "b": "error"}
    (explained,) = found.explained
    assert explained.reasons == ()
    assert explained.error.startswith("attribute v: parse semantic version")


def test_an_expression_is_evaluated_once_for_devices_it_cannot_tell_apart() -> None:
    many = fleet(*(device(f"gpu-{i}", model="H200", uuid=str(i)) for i in range(1000)))
    found = survey(f'{MODEL} == "H200" && device.driver == "{GPU}"', many)
    assert len(found.results) == 1
    assert found.count(MatchOutcome.MATCH) == 1000


def test_an_empty_fleet_is_no_good() -> None:
    assert not survey("true", PublishedDevices([])).is_good
    assert not survey("1", PublishedDevices([])).is_good
