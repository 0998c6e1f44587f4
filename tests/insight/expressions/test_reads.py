from __future__ import annotations

import pytest

from moorage.cel.lang import macros
from moorage.cel.lang.library import optionals
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.parser import parse
from moorage.insight.expressions.syntax import EVERYTHING, DeviceField, reads_of

MACROS = (*STANDARD_MACROS, *optionals.library().macros, *macros.bindings_library().macros)
MODEL = DeviceField("attributes", "d", "model")


def reads(text: str) -> set[DeviceField]:
    return set(reads_of(parse(text, MACROS).expr))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", set()),
        ('device.driver == "d"', {DeviceField("driver")}),
        ("device.name", {DeviceField("name")}),
        ("device.allowMultipleAllocations", {DeviceField("allowMultipleAllocations")}),
        ('device.attributes["d"].model', {MODEL}),
        ('device.attributes["d"]["model"]', {MODEL}),
        ("device.attributes.d.model", {MODEL}),
        ('device.attributes[?"d"].?model.orValue("x")', {MODEL}),
        ('has(device.attributes["d"].model)', {MODEL}),
        ('device.capacity["d"].memory', {DeviceField("capacity", "d", "memory")}),
        ('device.attributes["d"].model.lowerAscii().startsWith("h")', {MODEL}),
        ('device.attributes["d"].model[0] == "x"', {MODEL}),
        ('device.attributes["d"]', {DeviceField("attributes", "d")}),
        ('"d" in device.attributes', {DeviceField("attributes")}),
        ('"model" in device.attributes["d"]', {DeviceField("attributes", "d")}),
        (
            "device.attributes[device.driver].model",
            {DeviceField("attributes"), DeviceField("driver")},
        ),
        (
            'device.attributes["d"][device.driver]',
            {DeviceField("attributes", "d"), DeviceField("driver")},
        ),
        ("device.attributes.exists(d, d == 'x')", {DeviceField("attributes")}),
        (
            'device.attributes["d"].model.exists(m, m == device.driver)',
            {MODEL, DeviceField("driver")},
        ),
        ("device == device", {EVERYTHING}),
        ("[device].exists(d, d.driver == 'x')", {EVERYTHING}),
        ("[1].exists(device, device == 1)", set()),
        ('cel.bind(a, device.attributes["d"], a.model == a.model)', {MODEL}),
        ('cel.bind(a, device.attributes, a["d"].model)', {MODEL}),
        ("cel.bind(a, device, a.driver)", {EVERYTHING}),
        ('cel.bind(a, device.attributes["d"].model, a == a)', {MODEL}),
        ('cel.bind(device, "x", device == "y")', set()),
        ('cel.bind(a, device.attributes["d"], [1].exists(a, a == 1))', set()),
        ('device.attributes["d"].?model.optMap(m, m + "x")', {MODEL}),
        (".device.driver", {DeviceField("driver")}),
    ],
)
def test_what_an_expression_reads(text: str, expected: set[DeviceField]) -> None:
    assert reads(text) == expected
