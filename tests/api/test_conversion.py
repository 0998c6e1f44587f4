from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import decode_json
from moorage.api.resource import v1, v1beta1
from moorage.api.resource.versions import from_hub, to_hub
from moorage.validation.equality import stored_form
from tests.strategies import instances

HUB_STRUCTS = [
    v1.DeviceClass,
    v1.DeviceTaintRule,
    v1.ResourceClaim,
    v1.ResourceClaimTemplate,
    v1.ResourceSlice,
]


def is_lossy(value: Any) -> bool:
    """Whether v1beta1 cannot say it: nothing but empties in `exactly`, false or empty nodes."""
    match value:
        case v1.ResourceSlice():
            return value.spec.node_name == "" or value.spec.all_nodes is False
        case v1.ResourceClaim():
            requests = value.spec.devices.requests or ()
        case v1.ResourceClaimTemplate():
            requests = value.spec.spec.devices.requests or ()
        case _:
            return False
    return any(request.exactly == v1.ExactDeviceRequest() for request in requests)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize("struct", HUB_STRUCTS, ids=lambda struct: struct.__name__)
@settings(max_examples=40)
@given(data=st.data())
def test_there_and_back_loses_nothing(struct: Any, version: str, data: st.DataObject) -> None:
    value = stored_form(data.draw(instances(struct).filter(lambda value: not is_lossy(value))))
    hub_version = value.api_version
    there = from_hub(value, f"resource.k8s.io/{version}")
    assert there.api_version == f"resource.k8s.io/{version}"
    assert to_hub(there, hub_version) == value


def v1beta1_claim(request: str) -> v1.DeviceRequest:
    text = f'{{"spec": {{"devices": {{"requests": [{request}]}}}}}}'
    claim = decode_json(text.encode(), v1beta1.ResourceClaim).value
    converted = to_hub(claim, v1.API_VERSION)
    assert isinstance(converted, v1.ResourceClaim)
    (only,) = converted.spec.devices.requests or ()
    return only


def test_flat_fields_move_below_exactly() -> None:
    request = v1beta1_claim('{"name": "a", "deviceClassName": "gpu", "count": 2}')
    assert request.exactly == v1.ExactDeviceRequest(device_class_name="gpu", count=2)


@pytest.mark.parametrize("field", ['"selectors": []', '"adminAccess": false', '"tolerations": []'])
def test_any_flat_field_that_is_set_makes_an_exact_request(field: str) -> None:
    request = v1beta1_claim(f'{{"name": "a", "firstAvailable": [{{"name": "s"}}], {field}}}')
    assert request.exactly is not None  # which is invalid beside firstAvailable, and meant to be
    assert request.first_available


def test_a_request_with_alternatives_only_has_no_exact_one() -> None:
    request = v1beta1_claim('{"name": "a", "firstAvailable": [{"name": "s"}]}')
    assert request.exactly is None


def test_a_device_without_basic_is_a_device_with_a_name() -> None:
    text = b'{"spec": {"nodeName": "", "allNodes": false, "devices": [{"name": "a"}]}}'
    converted = to_hub(decode_json(text, v1beta1.ResourceSlice).value, v1.API_VERSION)
    assert converted.spec == v1.ResourceSliceSpec(devices=(v1.Device(name="a"),))
