from __future__ import annotations

import pytest

from moorage.cel.device_values import KEY_HINT, with_hint
from moorage.insight.expressions.evaluation import (
    EvaluationReport,
    ExpressionEvaluator,
    evaluator_of,
)
from tests.insight.fleets import GPU, compiler, device, fleet

H200 = device(
    "gpu-0",
    model="H200",
    numa=1,
    healthy=False,
    links=["a", "b"],
    capacity={"memory": "141Gi"},
)


def why(expression: str) -> list[str]:
    """Return the reasons why an expression gives what it gives for the device."""
    inquiry = evaluator_of(expression.replace("D[", "device.attributes["), compiler())
    assert isinstance(inquiry, ExpressionEvaluator), inquiry
    survey = EvaluationReport(inquiry, fleet(H200))
    (explained,) = survey.explained
    return [str(reason).replace("device.attributes[", "D[") for reason in explained.reasons]


@pytest.mark.parametrize(
    ("expression", "reasons"),
    [
        # A comparison shows the values that it compares.
        (f'D["{GPU}"].model == "A100"', [f'D["{GPU}"].model == "A100" is false: model is "H200"']),
        (f'D["{GPU}"].numa + 1 > 5', [f'D["{GPU}"].numa + 1 > 5 is false: numa is 1']),
        ('device.driver == "x"', [f'device.driver == "x" is false: device.driver is "{GPU}"']),
        (
            f'device.capacity["{GPU}"].memory.compareTo(quantity("200Gi")) >= 0',
            [
                (
                    f'device.capacity["{GPU}"].memory.compareTo(quantity("200Gi")) >= 0 is false: '
                    "memory is 141Gi"
                )
            ],
        ),
        # The same name in two maps is told apart.
        (
            f'D["{GPU}"].model == D["x"].?model.orValue("none")',
            [
                (
                    f'D["{GPU}"].model == D["x"].?model.orValue("none") is false: '
                    f'D["{GPU}"].model is "H200", D["x"].?model is absent'
                )
            ],
        ),
        # An attribute that is false by itself has no parts.
        (f'D["{GPU}"].healthy', [f'D["{GPU}"].healthy is false']),
        (f'has(D["{GPU}"].colour)', [f'has(D["{GPU}"].colour) is false']),
        ("false", ["false is false"]),
        # && names the first term that is false, however they are grouped.
        (
            f'device.driver == "{GPU}" && (D["{GPU}"].numa == 2 && D["{GPU}"].healthy)',
            [f'D["{GPU}"].numa == 2 is false: numa is 1'],
        ),
        # What is absorbed does not matter.
        (
            f'device.driver == "x" && D["{GPU}"].colour == "red"',
            [f'device.driver == "x" is false: device.driver is "{GPU}"'],
        ),
        # || is false because of all.
        (
            f'device.driver == "x" || D["{GPU}"].numa == 2',
            [
                f'device.driver == "x" is false: device.driver is "{GPU}"',
                f'D["{GPU}"].numa == 2 is false: numa is 1',
            ],
        ),
        # Behind ! something is true that should not be.
        (
            f'!(D["{GPU}"].numa == 1 || D["{GPU}"].healthy)',
            [f'D["{GPU}"].numa == 1 is true: numa is 1'],
        ),
        (
            f'!(D["{GPU}"].numa == 1 && device.driver != "x")',
            [
                f'D["{GPU}"].numa == 1 is true: numa is 1',
                f'device.driver != "x" is true: device.driver is "{GPU}"',
            ],
        ),
        # A choice comes with what it was made by.
        (
            f'D["{GPU}"].numa == 1 ? D["{GPU}"].healthy : true',
            [f'D["{GPU}"].numa == 1 is true: numa is 1', f'D["{GPU}"].healthy is false'],
        ),
        # Loops.
        (
            f'D["{GPU}"].links.exists(l, l == "c")',
            [f'D["{GPU}"].links.exists(l, l == "c") is false: links is ["a", "b"]'],
        ),
        (
            f'D["{GPU}"].links.all(l, l == "a")',
            [f'D["{GPU}"].links.all(l, l == "a") is false, since l == "a" is false: l is "b"'],
        ),
        (
            f'!D["{GPU}"].links.exists(l, l == "b")',
            [f'D["{GPU}"].links.exists(l, l == "b") is true, since l == "b" is true: l is "b"'],
        ),
        (
            f'D["{GPU}"].links.all(i, l, i < 1)',
            [f'D["{GPU}"].links.all(i, l, i < 1) is false, since i < 1 is false: i is 1'],
        ),
        # Names that are bound have values, too.
        (
            f'cel.bind(gpu, D["{GPU}"], gpu.numa == 1 && gpu.model == "A100")',
            ['gpu.model == "A100" is false: gpu.model is "H200"'],
        ),
    ],
)
def test_a_no_names_the_parts_that_said_no(expression: str, reasons: list[str]) -> None:
    assert why(expression) == reasons


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (
            f'device.driver == "{GPU}" && D["{GPU}"].colour == "red"',
            f'D["{GPU}"].colour has no value: no such key: colour{KEY_HINT}',
        ),
        (
            f'D["{GPU}"].model > 3',
            f'D["{GPU}"].model > 3 has no value: no such overload, model is "H200"',
        ),
        (
            f'D["{GPU}"].numa == 1 ? D["{GPU}"].colour : true',
            f'D["{GPU}"].colour has no value: no such key: colour{KEY_HINT}',
        ),
        (
            f'D["{GPU}"].links.map(l, int(l)).size() == 1',
            "int(l) has no value: type conversion error from 'string' to 'int', l is \"a\"",
        ),
        (
            f'cel.bind(gpu, D["{GPU}"], gpu.colour == "red")',
            f"gpu.colour has no value: no such key: colour{KEY_HINT}",
        ),
        (
            'quantity("x").isInteger()',
            (
                'quantity("x") has no value: quantities must match the regular expression '
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
    ],
)
def test_an_error_names_the_part_that_it_comes_from(expression: str, reason: str) -> None:
    assert why(expression) == [reason]


def test_the_hint_of_the_scheduler_is_added_to_missing_keys_only() -> None:
    assert with_hint("no such key: x") == (
        "no such key: x. consider using CEL optional chaining (.? followed by orValue()) or "
        "guarding the check with has() for optional fields"
    )
    assert with_hint("no such overload") == "no such overload"
