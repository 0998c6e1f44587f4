"""Specs of claim templates in the form in which Kubernetes shows them."""

from __future__ import annotations

from moorage.api.codec import decode_tree
from moorage.api.resource.v1 import ResourceClaimTemplateSpec
from moorage.validation.errors import shown
from moorage.validation.go_layout import internal_template


def test_every_field_is_there_and_what_is_html_is_escaped() -> None:
    selector = {"cel": {"expression": "a && b"}}
    exactly = {"deviceClassName": "c", "selectors": [selector], "capacity": {"requests": {"m": 1}}}
    config = {"requests": ["d"], "opaque": {"driver": "x", "parameters": {"k": "v"}}}
    devices = {
        "requests": [{"name": "d", "exactly": exactly}],
        "constraints": [{"matchAttribute": "x/y"}],
        "config": [config],
    }
    tree = {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": devices}}
    spec = decode_tree(tree, ResourceClaimTemplateSpec).value
    assert shown(internal_template(spec)) == (
        '{"labels":{"a":"b"},"Spec":{"Devices":{"Requests":[{"Name":"d","Exactly":{'
        '"DeviceClassName":"c","Selectors":[{"CEL":{"Expression":"a \\u0026\\u0026 b"}}],'
        '"AllocationMode":"","Count":0,"AdminAccess":null,"Tolerations":null,'
        '"Capacity":{"Requests":{"m":"1"}},"DerivedAttributes":null},"FirstAvailable":null}],'
        '"Constraints":[{"Requests":null,"MatchAttribute":"x/y","DistinctAttribute":null}],'
        '"Config":[{"Requests":["d"],"Opaque":{"Driver":"x","Parameters":{"k":"v"}}}]}}}'
    )
