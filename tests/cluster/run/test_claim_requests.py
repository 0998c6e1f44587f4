"""Requests on the command line, as requests of a claim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.resource.v1 import Device, DeviceAttribute
from moorage.cluster.run.claim_requests import (
    ClaimRequestError,
    NodeOffer,
    RequestedAmount,
    claim_devices,
    parse_requests,
)

NUMA = "resource.kubernetes.io/numaNode"
OFFER = NodeOffer(
    frozenset({"dra.cpu", "dra.memory", "dra.net", "gpu.amd.com", "gpu.example.com"}),
    (
        ("dra.cpu", Device(name="socket", allow_multiple_allocations=True)),
        ("dra.net", Device(name="eth0", attributes={NUMA: DeviceAttribute(int_value=0)})),
        ("gpu.amd.com", Device(name="gpu", attributes={"model": DeviceAttribute()})),
    ),
)


def devices(
    *texts: str,
    matches: tuple[str, ...] = (),
    selectors: tuple[str, ...] = (),
    offer: NodeOffer = OFFER,
) -> dict[str, Any]:
    return claim_devices(parse_requests(texts), offer, matches=matches, selectors=selectors)


def refusal(*texts: str, **given: Any) -> str:
    with pytest.raises(ClaimRequestError) as caught:
        devices(*texts, **given)
    return str(caught.value)


def test_a_word_stands_for_the_class_that_is_here() -> None:
    (request,) = devices("gpu=2")["requests"]
    assert request == {"name": "gpu", "exactly": {"deviceClassName": "gpu.amd.com", "count": 2}}


def test_a_class_is_meant_by_its_name_and_one_device_without_an_amount() -> None:
    (request,) = devices("gpu.example.com")["requests"]
    assert request["name"] == "gpu-example-com"
    assert request["exactly"] == {"deviceClassName": "gpu.example.com", "count": 1}


def test_cpus_and_memory_are_asked_for_by_capacity() -> None:
    cpu, memory = (each["exactly"] for each in devices("cpu=2,memory=4Gi")["requests"])
    assert cpu["capacity"] == {"requests": {"dra.cpu/cpu": "2"}}
    assert memory["capacity"] == {"requests": {"size": "4Gi"}}


def test_cpus_that_are_devices_are_counted() -> None:
    alone = NodeOffer(OFFER.classes, (("dra.cpu", Device(name="cpu-0")),))
    (request,) = devices("cpu=2", offer=alone)["requests"]
    assert request["exactly"] == {"deviceClassName": "dra.cpu", "count": 2}


def test_requests_of_one_word_have_different_names() -> None:
    names = [each["name"] for each in devices("cpu=1", "cpu=1,gpu=1")["requests"]]
    assert names == ["cpu", "cpu-2", "gpu"]


def test_an_attribute_without_a_domain_is_a_standard_one() -> None:
    found = devices("gpu=1,nic=1", matches=("numaNode", "gpu.amd.com/model"))["constraints"]
    assert found == [{"matchAttribute": NUMA}, {"matchAttribute": "gpu.amd.com/model"}]


def test_a_selector_is_for_its_request_only() -> None:
    gpu, cpu = (e["exactly"] for e in devices("gpu=1,cpu=1", selectors=("gpu=a == b",))["requests"])
    assert gpu["selectors"] == [{"cel": {"expression": "a == b"}}]
    assert "selectors" not in cpu


@pytest.mark.parametrize(
    ("texts", "given", "text"),
    [
        (["gpux=1"], {}, "did you mean gpu?"),
        (["tpu=1"], {}, "tpu: the cluster has no DeviceClass tpu.google.com"),
        (["gpu=0"], {}, "gpu=0: the number of devices is 1, 2, 3, …"),
        (["gpu=1.5"], {}, "the number of devices"),
        (["gpu=33"], {}, "33 devices, a claim has at most 32"),
        (["cpu=many"], {}, "cpu=many: the amount is a quantity, such as 2 or 4Gi"),
        (["cpu=-1"], {}, "the amount is a quantity"),
        (["gpu="], {}, "'gpu=' is not NAME=AMOUNT, such as gpu=1"),
        (["gpu=1,,cpu=1"], {}, "is not NAME=AMOUNT"),
        (["cpu=1"] * 33, {}, "33 requests, a claim has at most 32"),
        (["gpu=1"], {"matches": ("numaNodes",)}, f"did you mean {NUMA}?"),
        (["gpu=1"], {"selectors": ("cpu=true",)}, "with NAME of gpu"),
        (["gpu=1"], {"selectors": ("true",)}, "is not NAME=EXPRESSION"),
    ],
)
def test_what_cannot_be_asked_for_is_said(
    texts: list[str], given: dict[str, Any], text: str
) -> None:
    assert text in refusal(*texts, **given)


@given(st.text(max_size=40))
def test_any_text_is_asks_or_refused(text: str) -> None:
    try:
        asks = parse_requests([text])
    except ClaimRequestError:
        return
    assert all(isinstance(each, RequestedAmount) and each.name and each.amount for each in asks)
