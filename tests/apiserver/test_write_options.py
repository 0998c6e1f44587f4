"""Options of writes, deprecated versions, and what a body must not have."""

from __future__ import annotations

import pytest

from moorage.api.built_in_kinds import deprecation_of
from moorage.api.catalogue import CATALOGUE
from tests.apiserver.client import (
    APPLY_PATCH,
    CLASSES,
    CONFIG_MAPS,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Client,
    config_map,
    device_class,
)

ONE = f"{CONFIG_MAPS}/m"
LONG = "x" * 129
DRY_RUN = 'dryRun: Unsupported value: ["Some"]: supported values: "All"'
STRICTNESS = 'Unsupported value: "Odd": supported values: "", "Ignore", "Strict", "Warn"'


@pytest.mark.parametrize(
    ("method", "url", "media", "kind", "why"),
    [
        ("POST", f"{CONFIG_MAPS}?dryRun=Some", "application/json", "CreateOptions", DRY_RUN),
        (
            "POST",
            f"{CONFIG_MAPS}?fieldValidation=Odd",
            "application/json",
            "CreateOptions",
            f"fieldValidation: {STRICTNESS}",
        ),
        (
            "PUT",
            f"{ONE}?fieldManager={LONG}",
            "application/json",
            "UpdateOptions",
            "fieldManager: Too long: may not be more than 128 bytes",
        ),
        (
            "PATCH",
            f"{ONE}?force=true",
            MERGE_PATCH,
            "PatchOptions",
            "force: Forbidden: may not be specified for non-apply patch",
        ),
        (
            "PATCH",
            f"{ONE}?dryRun=Some",
            APPLY_PATCH,
            "PatchOptions",
            f"[fieldManager: Required value: is required for apply patch, {DRY_RUN}]",
        ),
        ("DELETE", f"{ONE}?dryRun=Some", "application/json", "DeleteOptions", DRY_RUN),
        ("DELETE", f"{CONFIG_MAPS}?dryRun=Some", "application/json", "DeleteOptions", DRY_RUN),
    ],
)
def test_options_that_do_not_exist_are_refused(
    client: Client, method: str, url: str, media: str, kind: str, why: str
) -> None:
    body = None if method == "DELETE" else config_map()
    refused = client.ask(method, url, body, **{"content-type": media})
    assert refused.status == 422
    assert refused.message == f'{kind}.meta.k8s.io "" is invalid: {why}'
    assert refused.json["details"]["kind"] == kind


def test_a_new_object_has_no_revision(client: Client) -> None:
    refused = client.post(CONFIG_MAPS, config_map(resourceVersion="5"))
    assert refused.status == 400
    assert refused.message == "resourceVersion should not be set on objects to be created"
    assert client.post(f"{CONFIG_MAPS}?dryRun=All", config_map(resourceVersion="5")).status == 201
    assert client.post(CONFIG_MAPS, config_map(resourceVersion="0")).status == 201


@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH])
def test_fields_that_a_patch_has_twice_are_reported(client: Client, media: str) -> None:
    client.post(CONFIG_MAPS, config_map())
    twice = b'{"data":{"a":"1","a":"2"}}'
    refused = client.patch(f"{ONE}?fieldValidation=Strict", twice, media)
    assert refused.status == 422
    assert refused.message.endswith('strict decoding error: duplicate field "data.a"')
    changed = client.patch(ONE, twice, media)
    assert changed.json["data"]["a"] == "2"
    assert changed.warnings == ['299 - "duplicate field \\"data.a\\""']


def test_an_empty_entry_forgets_all_managers(client: Client) -> None:
    client.post(f"{CONFIG_MAPS}?fieldManager=first", config_map())
    forgotten = client.patch(ONE, {"metadata": {"managedFields": [{}]}}, MERGE_PATCH)
    assert forgotten.status == 200
    assert "managedFields" not in client.get(ONE).json["metadata"]
    changed = client.patch(f"{ONE}?fieldManager=second", {"data": {"b": "1"}}, MERGE_PATCH)
    assert "managedFields" not in changed.json["metadata"]
    again = {**config_map(), "data": {"b": "2"}}
    refused = client.patch(f"{ONE}?fieldManager=third", again, APPLY_PATCH)
    assert 'conflict with "before-first-apply"' in refused.message


OLD_CLASSES = CLASSES.replace("/v1/", "/v1beta1/")
OLD = '299 - "resource.k8s.io/v1beta1 DeviceClass is deprecated in v1.35+, unavailable in v1.38+"'


def test_whoever_uses_a_deprecated_version_is_warned(client: Client) -> None:
    body = {**device_class(), "apiVersion": "resource.k8s.io/v1beta1", "odd": 1}
    made = client.post(OLD_CLASSES, body)
    assert made.warnings == [OLD, '299 - "unknown field \\"odd\\""']
    assert client.get(OLD_CLASSES).warnings == [OLD]
    assert client.get(f"{OLD_CLASSES}/none").warnings == [OLD]
    assert client.get(CLASSES).warnings == []


def test_a_version_that_is_replaced_names_the_newer_one() -> None:
    group, name = "admissionregistration.k8s.io", "MutatingAdmissionPolicy"
    assert deprecation_of(CATALOGUE.find(f"{group}/v1beta1", name)) == (
        f"{group}/v1beta1 {name} is deprecated in v1.37+, unavailable in v1.40+; "
        f"use {group}/v1 {name}"
    )


def test_some_kinds_of_a_deprecated_version_are_current(client: Client) -> None:
    assert client.get("/apis/resource.k8s.io/v1beta2/devicetaintrules").warnings == []


def test_an_update_without_revision_is_refused_in_the_name_of_the_resource(client: Client) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    assert client.post(leases, lease).status == 201
    refused = client.put(f"{leases}/l", lease)
    assert refused.message == (
        'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )
