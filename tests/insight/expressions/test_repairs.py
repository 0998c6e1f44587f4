"""Mistakes in selectors: each is named, and repaired by an expression that was run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.hardware.catalogue import Catalogue
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.evaluation import ExpressionEvaluator, MatchOutcome, evaluator_of
from moorage.insight.expressions.mistake import RepairKind
from moorage.insight.expressions.published_devices import (
    PublishedDevice,
    PublishedDevices,
    written,
)
from moorage.insight.expressions.repairs import SelectorDiagnosis, diagnose
from moorage.insight.expressions.syntax import DeviceField
from moorage.insight.expressions.values import compared, literal
from moorage.insight.messages import CAUSE_LENGTH_MAX
from tests.insight.fleets import GPU, device, fleet, slice_of

COMPILER = DeviceCompiler(CelFeatures(list_attributes=True))
A = 'device.attributes["gpu.nvidia.com"]'
C = 'device.capacity["gpu.nvidia.com"]'
N = 'device.attributes["dra.net"]'
NUMA = 'device.attributes["resource.kubernetes.io"].numaNode'
H100 = '"NVIDIA H100 80GB HBM3"'
NAMED = f"{A}.productName == {H100}"
AT_LEAST_40 = f'{C}.memory.compareTo(quantity("40Gi")) >= 0'


@cache
def published(profile: str) -> PublishedDevices:
    return PublishedDevices(Catalogue().fleet(profile).slices)


def devices_of(profile: str, driver: str) -> Devices:
    known = published(profile)
    return Devices([each for each in known.devices if each.driver == driver], known)


def diagnosed(*expressions: str, driver: str = "gpu.nvidia.com") -> SelectorDiagnosis:
    found = diagnose(expressions, COMPILER, devices_of("dgx-h100", driver))
    assert found is not None
    assert 0 < len(found.cause) <= CAUSE_LENGTH_MAX
    return found


class Mistaken(NamedTuple):
    """A selector, a pattern of the cause, and the repaired selector; "" if there is none."""

    expression: str
    cause: str
    meant: str


NAMES = [
    Mistaken(f"{A}.productname == {H100}", "productname does not exist: .*8 of 24", NAMED),
    Mistaken(f"{A}.ProductName == {H100}", "ProductName does not exist.*productName", NAMED),
    Mistaken(f"{A}.product_name == {H100}", "product_name does not exist.*productName", NAMED),
    Mistaken(f"{A}.productNmae == {H100}", "productNmae does not exist.*productName", NAMED),
    Mistaken(f"{A}.productNames == {H100}", "productNames does not exist.*productName", NAMED),
    Mistaken(f"{A}.name == {H100}", "attribute name does not exist.*productName", NAMED),
    Mistaken(f"{A}.model == {H100}", "attribute model does not exist.*productName", NAMED),
    Mistaken(f"{A}.productName.value == {H100}", "productName.value is no attribute", NAMED),
    Mistaken(
        f'device.attributes["nvidia.com"].productName == {H100}',
        'productName does not exist in domain "nvidia.com".*"gpu.nvidia.com"',
        NAMED,
    ),
    Mistaken(f'device.attributes["gpu.nvidia.con"].productName == {H100}', "gpu.nvidia.con", NAMED),
    Mistaken(f'device.attributes["productName"] == {H100}', 'in domain "gpu.nvidia.com"', NAMED),
    Mistaken(f'device.attributes["gpu.nvidia.com/productName"] == {H100}', "1:49", NAMED),
    Mistaken(f"device.attributes.gpu.nvidia.com.productName == {H100}", "is no attribute", NAMED),
    Mistaken(f"device.productName == {H100}", "device.productName does not exist", NAMED),
    Mistaken(f'attributes["gpu.nvidia.com"].productName == {H100}', "no variable attr", NAMED),
    Mistaken(f'device.attribute["gpu.nvidia.com"].productName == {H100}', "1:7", NAMED),
    Mistaken(f"{A}.numaNode == 0", 'numaNode.*domain "resource.kubernetes.io"', f"{NUMA} == 0"),
    Mistaken(f'has({A}["productName"])', r"has\(\) takes a field", f"has({A}.productName)"),
    Mistaken('device.driver == "gpu.nvidia.con"', "con.*com", 'device.driver == "gpu.nvidia.com"'),
    Mistaken('device.driver == "nvidia.com"', "nvidia.com", 'device.driver == "gpu.nvidia.com"'),
    Mistaken(f'{A}.colour == "red"', "colour does not exist: gpu.nvidia.com has architecture", ""),
]
CAPACITIES = [
    Mistaken(f'{A}.memory.compareTo(quantity("40Gi")) >= 0', "memory.* is a capacity", AT_LEAST_40),
    Mistaken(f"{A}.memory >= 40", "memory.* is a capacity", AT_LEAST_40),
    Mistaken(f"{C}.productName == {H100}", "attribute productName", NAMED),
    Mistaken(f"{C}.memory >= 40", "1:42: memory is a quantity, but 40 is an int", AT_LEAST_40),
    Mistaken(f'{C}.memory >= "40Gi"', 'memory is a quantity, but "40Gi" is a string', AT_LEAST_40),
    Mistaken(f"{C}.memory >= 40Gi", "amount such as 1Gi", AT_LEAST_40),
    Mistaken(f'{C}.memory >= quantity("40Gi")', r"compareTo\(\) compares, not >=", AT_LEAST_40),
    Mistaken(f'{C}.memory.compareTo("40Gi") >= 0', "memory is a quantity", AT_LEAST_40),
    Mistaken(
        f'{C}.memory.compareTo(quantity("40GB")) >= 0',
        r'quantity\("40GB"\), which is no quantity',
        f'{C}.memory.compareTo(quantity("40G")) >= 0',
    ),
    Mistaken(
        f'{C}.memory.compareTo(quantity("80Gi")) >= 0',
        "memory 80Gi is asked for, but devices have at most 81559Mi",
        f'{C}.memory.compareTo(quantity("80G")) >= 0',
    ),
    Mistaken(
        f'{C}.memory.compareTo(quantity("141Gi")) >= 0',
        "memory 141Gi is asked for, but devices have at most 81559Mi",
        f'{C}.memory.compareTo(quantity("81559Mi")) >= 0',
    ),
    Mistaken(
        f"{C}.memory >= 81000",
        "81000 is an int",
        f'{C}.memory.compareTo(quantity("81000Mi")) >= 0',
    ),
]
TYPES = [
    Mistaken(f'{NUMA} == "0"', 'numaNode is the int 0, not the string "0"', f"{NUMA} == 0"),
    Mistaken(f'{NUMA} in ["0", "1"]', "numaNode is the int 0", f"{NUMA} in [0, 1]"),
    Mistaken(
        f'{A}.driverVersion == "580.65.6"',
        'is the version 580.65.6, not the string "580.65.6"',
        f'{A}.driverVersion == semver("580.65.6")',
    ),
    Mistaken(
        f'{A}.driverVersion >= "580"',
        'driverVersion is a version, not the string "580"',
        f'{A}.driverVersion.compareTo(semver("580.0.0")) >= 0',
    ),
    Mistaken(
        f'{A}.driverVersion.compareTo(semver("580.1")) >= 0',
        r'semver\("580.1"\), which is no version.*"580.1.0"',
        f'{A}.driverVersion.compareTo(semver("580.1.0")) >= 0',
    ),
    Mistaken(f'"H100" in {A}.productName', "not a list", f'{A}.productName.contains("H100")'),
    Mistaken(f"{A}.productName.exists(x, x == {H100})", "productName is a string, not", NAMED),
    Mistaken(
        f"{A}.?productName == {H100}",
        "is an optional, not a value",
        f"has({A}.productName) && {NAMED}",
    ),
]
VALUES = [
    Mistaken(f'{A}.productName == "NVIDIA H100 80GB"', 'no device has.*"NVIDIA H100 80GB"', NAMED),
    Mistaken(f'{A}.productName == "h100"', 'productName "h100": devices have', NAMED),
    Mistaken(f'{A}.architecture == "hopper"', '"Hopper"', f'{A}.architecture == "Hopper"'),
    Mistaken(
        f'{A}.productName == "Hopper"', "value of architecture", f'{A}.architecture == "Hopper"'
    ),
    Mistaken(
        f'{A}.productName.contains("h100")', 'contains "h100"', f'{A}.productName.contains("H100")'
    ),
    Mistaken(
        f'{A}.productName.startsWith("H100")',
        'starts with "H100"',
        f'{A}.productName.contains("H100")',
    ),
    Mistaken(f"{A}.productName != {H100}", "every device has productName.*excluded", ""),
]
SPELLINGS = [
    Mistaken(f"{A}.productName = {H100}", "1:49: = is no operator, == is", NAMED),
    Mistaken(f"{NAMED} and {NUMA} == 0", "and is no operator", f"{NAMED} && {NUMA} == 0"),
    Mistaken(f"{A}.productName == “NVIDIA H100 80GB HBM3”", "curly quotes", NAMED),
    Mistaken(f"{A}.productName == NVIDIA H100 80GB HBM3", "not in quotes", NAMED),
    Mistaken(f"device.attributes[gpu.nvidia.com].productName == {H100}", "gpu.nvidia.com", NAMED),
    Mistaken(f"{NAMED} ||", "operator at the end", NAMED),
    Mistaken(
        f'{A}.productName.startswith("NVIDIA")',
        r"no function startswith\(\): did you mean startsWith",
        f'{A}.productName.startsWith("NVIDIA")',
    ),
    Mistaken(f'{A}.productName.matches("[H")', "no regular expression", ""),
    Mistaken("", "does not compile", ""),
]
SEVERAL = [
    Mistaken(
        f'{A}.productname == "h100" && {C}.memory >= "40Gi"',
        "memory is a quantity",
        f"{NAMED} && {AT_LEAST_40}",
    ),
    Mistaken(
        f'{A}.architecture == "Hopper" && {A}.architecture == "Ampere"',
        'architecture cannot be "Hopper" and "Ampere" at once',
        f'{A}.architecture in ["Hopper", "Ampere"]',
    ),
    Mistaken(
        f'{C}.memory.compareTo(quantity("90Gi")) > 0 && {C}.memory.compareTo(quantity("40Gi")) < 0',
        "memory cannot be more than 90Gi and less than 40Gi",
        f'{C}.memory.compareTo(quantity("40Gi")) > 0 && {C}.memory.compareTo(quantity("90Gi")) < 0',
    ),
]


@pytest.mark.parametrize(
    "mistaken",
    [*NAMES, *CAPACITIES, *TYPES, *VALUES, *SPELLINGS, *SEVERAL],
    ids=lambda mistaken: mistaken.expression,
)
def test_a_mistake_is_named_and_repaired(mistaken: Mistaken) -> None:
    found = diagnosed(mistaken.expression)
    assert re.search(mistaken.cause, found.cause), found.cause
    meant = found.repairs[0].expressions[0] if found.repairs else ""
    assert meant == mistaken.meant


@pytest.mark.parametrize(
    ("expression", "cause", "meant"),
    [
        (
            f'{N}.rdma == "true"',
            'rdma is the bool true, not the string "true"',
            f"{N}.rdma == true",
        ),
        (f"{N}.rdma == 1", "rdma is the bool true, not the int 1", f"{N}.rdma == true"),
        (f"{N}.rdma == True", "there is no variable True", f"{N}.rdma == true"),
        (f'{N}.state == "UP"', 'no device has state "UP"', f'{N}.state == "up"'),
        (f'{N}.mtu >= "1500"', "mtu is the int 1500", f"{N}.mtu >= 1500"),
    ],
)
def test_types_are_named_where_values_print_alike(expression: str, cause: str, meant: str) -> None:
    found = diagnosed(expression, driver="dra.net")
    assert cause in found.cause
    assert found.repairs[0].expressions == (meant,)


def test_mistakes_in_two_selectors_are_repaired_together() -> None:
    given_ = (f"{A}.productname == {H100}", f'{NUMA} == "0"')
    found = diagnosed(*given_)
    assert found.repairs[0].changed(given_) == {0: NAMED, 1: f"{NUMA} == 0"}
    assert "productname does not exist" in found.cause
    assert "numaNode is the int 0" in found.cause


def test_a_list_that_is_compared_as_one_value_is_searched() -> None:
    known = fleet(device("a", zones=["left", "right"]))
    zones = f'device.attributes["{GPU}"].zones'
    found = diagnose([f'{zones} == "left"'], COMPILER, Devices(known.devices, known))
    assert found is not None
    assert found.cause == 'zones is a list, ["left", "right"], not the string "left"'
    assert found.repairs[0].expressions == (f'{zones}.includes("left")',)


def test_an_attribute_of_some_devices_is_guarded_where_it_is_read() -> None:
    known = fleet(device("a", fast=True), device("b", model="x"))
    fast = f'device.attributes["{GPU}"].fast'
    found = diagnose([fast], COMPILER, Devices(known.devices, known))
    assert found is not None
    assert found.cause.startswith(f"1 of 2 devices has no {GPU}/fast")
    assert found.repairs[0].kind is RepairKind.GUARD
    assert found.repairs[0].expressions == (f"has({fast}) && {fast}",)


def test_devices_of_other_drivers_need_no_guard_where_the_class_is_not_known() -> None:
    known = published("dgx-h100")
    assert diagnose([NAMED], COMPILER, Devices(known.devices, known, is_class_known=False)) is None
    found = diagnose([NAMED], COMPILER, Devices(known.devices, known))
    assert found is not None
    assert found.repairs[0].kind is RepairKind.GUARD


def test_another_model_is_no_misspelling() -> None:
    found = diagnosed(f'{A}.productName == "NVIDIA A100 80GB"')
    assert found.repairs[0].kind is RepairKind.OTHER_VALUE
    assert "did you mean" not in found.cause


def test_the_opposite_of_what_is_asked_for_is_never_offered() -> None:
    assert diagnosed(f"{N}.rdma == false", driver="dra.net").repairs == ()
    assert diagnosed(f"!{N}.rdma", driver="dra.net").repairs == ()


def test_a_question_is_given_up_only_if_nothing_else_helps() -> None:
    found = diagnosed(f"{NAMED} && {A}.productName.size() == 0")
    assert all(each.kind < RepairKind.DROPPED for each in found.repairs)
    found = diagnosed(f"{NAMED} && {A}.brand != 'Nvidia'")
    assert [each.kind for each in found.repairs] == [RepairKind.DROPPED]
    assert found.repairs[0].expressions == (NAMED,)
    assert found.repairs[0].text.startswith("give up ")


def test_a_selector_that_matches_is_no_mistake() -> None:
    assert diagnose([NAMED], COMPILER, devices_of("dgx-h100", "gpu.nvidia.com")) is None


# --- any mistake --------------------------------------------------------------------------------


PROFILES = ("dgx-h100", "example-gpu", "xe9680-mi300x", "tpu-v6e", "r760xa")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def fields_of(each: PublishedDevice) -> list[DeviceField]:
    fields = (each.variables or {})["device"]
    return [
        DeviceField(map_, domain, name)
        for map_ in ("attributes", "capacity")
        for domain, entries in sorted(fields[map_].items())
        for name in sorted(entries)
    ]


def misspelt(draw: Callable[[Any], Any], text: str) -> str:
    at = draw(st.integers(0, max(len(text) - 2, 0)))
    match draw(st.sampled_from(("swap", "drop", "double", "other", "case"))):
        case "swap":
            return text[:at] + text[at + 1 : at + 2] + text[at] + text[at + 2 :]
        case "drop" if len(text) > 4:
            return text[:at] + text[at + 1 :]
        case "double":
            return text[:at] + text[at] + text[at:]
        case "case":
            return text.swapcase()
    letter: str = draw(st.sampled_from(LETTERS))
    return text[:at] + letter + text[at + 1 :]


class Mutated(NamedTuple):
    """A selector that matches devices, one with a mistake, and the names to be said."""

    devices: Devices
    good: str
    bad: str
    names: tuple[str, ...]


@st.composite
def mutated(draw: Callable[[Any], Any]) -> Mutated:
    known = published(draw(st.sampled_from(PROFILES)))
    chosen = draw(st.sampled_from(known.devices))
    devices = Devices([each for each in known.devices if each.driver == chosen.driver], known)
    read = draw(st.sampled_from(fields_of(chosen)))
    value = chosen.value(read)
    relation = ">=" if read.field == "capacity" else "=="
    good = compared(written(read), relation, value)
    other_map = "capacity" if read.field == "attributes" else "attributes"
    whole = f"device.{read.field}"
    name, domain = misspelt(draw, read.name), misspelt(draw, read.domain)
    ways = [
        (good.replace(written(read), written(read._replace(name=name))), name),
        (good.replace(written(read), written(read._replace(domain=domain))), domain),
        (good.replace(written(read), f'{whole}["{read.name}"]'), read.name),
        (good.replace(written(read), f'{whole}["{read.domain}/{read.name}"]'), read.name),
        (good.replace(written(read), written(read._replace(field=other_map))), read.name),
    ]
    if isinstance(value, str):
        wrong = misspelt(draw, value)
        ways.append((good.replace(literal(value), literal(wrong)), wrong))
    elif read.field == "attributes":
        text = str(value).lower() if isinstance(value, bool) else str(value)
        ways.append((f'{written(read)} == "{text}"', read.name))
    else:
        ways.append((f'{written(read)} >= "{value}"', read.name))
        ways.append((f'{written(read)} >= quantity("{value}")', read.name))
    bad, said = draw(st.sampled_from(ways))
    return Mutated(devices, good, bad, (said, read.name))


def matching(expression: str, devices: Devices) -> set[int]:
    evaluator = evaluator_of(expression, COMPILER)
    if not isinstance(evaluator, ExpressionEvaluator) or evaluator.caveat:
        return set()
    return {
        each.index
        for result in evaluator.results(devices.fleet, devices.candidates)
        if result.outcome is MatchOutcome.MATCH
        for each in result.devices
    }


@given(mutated())
def test_whatever_is_mistyped_is_named_and_a_repair_matches(made: Mutated) -> None:
    found = diagnose([made.bad], COMPILER, made.devices)
    if matching(made.bad, made.devices):
        return
    assert found is not None
    assert 0 < len(found.cause) <= CAUSE_LENGTH_MAX
    assert any(name.lower() in found.cause.lower() for name in made.names), found.cause
    for repair in found.repairs:
        assert len(matching(repair.expressions[0], made.devices)) == repair.matching > 0
    if len(made.names[0]) > 4:
        assert found.repairs, found.cause


@given(st.text(max_size=60) | st.lists(st.sampled_from([*"()[]\"'.&|!=<>", A, "1Gi"])).map("".join))
def test_no_text_is_too_strange_to_be_diagnosed(text: str) -> None:
    known = fleet(device("a", model="x"))
    found = diagnose([text], COMPILER, Devices(known.devices, known))
    assert found is None or len(found.cause) <= CAUSE_LENGTH_MAX


# --- work ---------------------------------------------------------------------------------------


def evaluations(work: Callable[[], object]) -> int:
    """Return how many times programs are evaluated."""
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        code = frame.f_code
        count += event == "call" and (code.co_name, code.co_filename[-10:]) == (
            "evaluate",
            "program.py",
        )

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_the_work_does_not_grow_with_devices_that_look_alike() -> None:
    def repaired(number: int) -> int:
        alike = (device(f"gpu-{i}", model="H200", uuid=f"u-{i}") for i in range(number))
        known = PublishedDevices([slice_of(*alike)])
        text = f'device.attributes["{GPU}"].modle == "h200"'
        return evaluations(lambda: diagnose([text], COMPILER, Devices(known.devices, known)))

    assert 0 < repaired(10) == repaired(1000) < 100


def test_an_expression_that_costs_too_much_is_not_tried_again_and_again() -> None:
    loop = "lists.range(40).all(x, lists.range(40).all(y, lists.range(40).all(z, true)))"
    known = fleet(*(device(f"gpu-{i}", slot=i) for i in range(20)))
    text = f'{loop} && device.attributes["{GPU}"].slot == "x"'
    devices = Devices(known.devices, known)
    assert evaluations(lambda: diagnose([text], COMPILER, devices)) < 60
