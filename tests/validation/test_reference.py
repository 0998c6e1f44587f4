"""Answers of Kubernetes 1.37 to requests at the edges: rows of what is stored, sent and answered.

The recorded corpus holds few updates of objects that are not valid, few odd metadata and few odd
texts. These rows hold what Kubernetes' own code answers to such requests.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import encode_json
from moorage.api.errors import DecodeError
from moorage.api.gates import Gates
from moorage.api.object_reader import read_json
from moorage.api.timestamp import Timestamp
from moorage.validation.registry import (
    RegistryResult,
    before_create,
    before_status_update,
    before_update,
    defaulted_hub,
)
from moorage.validation.strategy import Context

NOW = Timestamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
CONTEXT = Context(gates=Gates.parse(), now=NOW, extensions=False)

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CASELESS_SUBDOMAIN = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'Example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
IMMUTABLE = "field is immutable"
NAME_REQUIRED = "name or generateName is required"
ONE_VALUE = "exactly one value must be specified"


def answer(
    new: Any,
    old: Any = None,
    *,
    kind: str = "DeviceClass",
    version: str = "v1",
    status: bool = False,
    gates: str = "",
) -> RegistryResult:
    """Return our answer to a request; texts are sent as they stand, other values as JSON."""
    found = CATALOGUE.find(f"resource.k8s.io/{version}", kind)
    context = CONTEXT._replace(gates=Gates.parse(gates)) if gates else CONTEXT

    def read(value: Any) -> Any:
        data = value if isinstance(value, str) else json.dumps(value)
        return read_json(data.encode(), found, extensions=False).value

    if old is None:
        return before_create(read(new), found, context)
    admit = before_status_update if status else before_update
    return admit(read(new), defaulted_hub(read(old), found, context), found, context)


def errors_of(admission: RegistryResult) -> set[tuple[str, str, str]]:
    return {
        (error.field, error.type.value.removeprefix("FieldValue"), error.detail)
        for error in admission.errors
    }


def stored(admission: RegistryResult) -> Any:
    assert admission.stored is not None, [str(error) for error in admission.errors]
    return json.loads(encode_json(admission.stored))


def described(
    spec: Any = None, /, *, name: str | None = "x", status: Any = None, **metadata: Any
) -> dict[str, Any]:
    """Return an object with the metadata and spec."""
    given = {} if name is None else {"name": name}
    object_: dict[str, Any] = {"metadata": given | metadata, "spec": spec or {}}
    return object_ if status is None else object_ | {"status": status}


def kept(spec: Any = None, /, **metadata: Any) -> dict[str, Any]:
    """Return an object as it is in storage."""
    return described(spec, **({"resourceVersion": "1", "uid": "u"} | metadata))


def a_slice(*devices: Any, **spec: Any) -> dict[str, Any]:
    """Return the spec of a slice."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    given = {"devices": list(devices)} if devices else {}
    return {"driver": "d.example.com", "nodeName": "n", "pool": pool} | given | spec


CLAIM = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
RULE = {"taint": {"key": "k", "effect": "NoSchedule", "timeAdded": "2024-01-01T00:00:00Z"}}


# --- metadata -----------------------------------------------------------------------------


class Meta(NamedTuple):
    """What is wrong with the metadata of a changed object."""

    new: dict[str, Any]
    old: dict[str, Any]
    errors: set[tuple[str, str, str]]


CHANGED_METADATA = {
    "no name": Meta(
        {"name": ""},
        {},
        {("metadata.name", "Required", NAME_REQUIRED), ("metadata.name", "Invalid", IMMUTABLE)},
    ),
    "a name that is no part of a path": Meta(
        {"name": "a/b%"},
        {"name": "a/b%"},
        {
            ("metadata.name", "Invalid", "may not contain '/'"),
            ("metadata.name", "Invalid", "may not contain '%'"),
            ("metadata.name", "Invalid", SUBDOMAIN),
        },
    ),
    "a dot for a name": Meta(
        {"name": ".."},
        {"name": ".."},
        {("metadata.name", "Invalid", "may not be '..'"), ("metadata.name", "Invalid", SUBDOMAIN)},
    ),
    "a prefix that is no part of a path": Meta(
        {"generateName": "a/"},
        {},
        {("metadata.generateName", "Invalid", "may not contain '/'")},
    ),
    "two ways to delete what depends": Meta(
        {"finalizers": ["orphan", "foregroundDeletion"]},
        {},
        {
            (
                "metadata.finalizers",
                "Invalid",
                "finalizer orphan and foregroundDeletion cannot be both set",
            )
        },
    ),
}


@pytest.mark.parametrize("row", CHANGED_METADATA.values(), ids=CHANGED_METADATA)
def test_a_change_is_checked_for_what_every_stored_object_needs(row: Meta) -> None:
    admission = answer(kept(**row.new), kept(**row.old))
    assert errors_of(admission) == row.errors


def test_a_finalizer_of_a_changed_object_must_be_a_label_key() -> None:
    admission = answer(kept(finalizers=["a/b/c"]), kept())
    assert {error.field for error in admission.errors} == {"metadata.finalizers"}


def test_the_namespace_of_a_changed_object_must_be_a_label() -> None:
    old = kept(CLAIM, namespace="UPPER")
    admission = answer(old, old, kind="ResourceClaim", status=True)
    assert {error.field for error in admission.errors} == {"metadata.namespace"}


def test_an_error_that_several_rules_find_is_reported_once() -> None:
    old = kept(CLAIM, namespace="default")
    admission = answer(kept(CLAIM, name="", namespace=""), old, kind="ResourceClaim")
    texts = [str(error) for error in admission.errors]
    assert len(texts) == len(set(texts))


def test_a_prefix_is_cut_in_bytes_before_it_is_checked() -> None:
    admission = answer(described(a_slice(), generateName="é-"), kind="ResourceSlice")
    assert errors_of(admission) == {("metadata.generateName", "Invalid", SUBDOMAIN)}


def test_only_the_beginning_of_a_long_prefix_becomes_a_name() -> None:
    prefix = "a" * 252
    admission = answer(described(a_slice(), name=None, generateName=prefix), kind="ResourceSlice")
    assert stored(admission)["metadata"]["generateName"] == prefix


def test_the_prefix_of_a_class_only_has_to_be_part_of_a_path() -> None:
    assert stored(answer(described(generateName="No_Name-")))
    admission = answer(described(generateName="a/b"))
    assert errors_of(admission) == {("metadata.generateName", "Invalid", "may not contain '/'")}


def test_keys_of_annotations_are_lowered_character_by_character() -> None:
    assert stored(answer(described(annotations={"İ": "x"})))
    assert stored(answer(described(a_slice(driver="İ.example.com")), kind="ResourceSlice"))


@pytest.mark.parametrize("api_version", ["v1", "/v1"])
def test_an_event_owns_nothing(api_version: str) -> None:
    owner = {"apiVersion": api_version, "kind": "Event", "name": "e", "uid": "u"}
    admission = answer(described(ownerReferences=[owner]))
    detail = "/v1, Kind=Event is disallowed from being an owner"
    assert errors_of(admission) == {("metadata.ownerReferences[0]", "Invalid", detail)}


def test_each_unprintable_character_of_a_manager_is_named() -> None:
    entry = {"operation": "Update", "manager": "é\n\u00a0"}
    admission = answer(described(managedFields=[entry]))
    assert errors_of(admission) == {
        ("metadata.managedFields[0].manager", "Invalid", detail)
        for detail in (
            "invalid character U+000A (at position 2)",
            "invalid character U+00A0 (at position 3)",
        )
    }


@pytest.mark.parametrize(
    ("sent", "in_storage", "refused"),
    [
        ("01", "1", None),
        ("0", "1", None),
        ("2", "1", "Conflict"),
        ("x", "1", 'strconv.ParseUint: parsing "x": invalid syntax'),
        ("-1", "1", 'strconv.ParseUint: parsing "-1": invalid syntax'),
        (
            "18446744073709551616",
            "1",
            'strconv.ParseUint: parsing "18446744073709551616": value out of range',
        ),
    ],
)
def test_revisions_are_compared_as_numbers(sent: str, in_storage: str, refused: str | None) -> None:
    admission = answer(kept(resourceVersion=sent), kept(resourceVersion=in_storage))
    if refused is None:
        assert admission.refused is None
        assert admission.errors == ()
    else:
        assert admission.refused is not None
        assert admission.refused.startswith(refused)


def test_the_last_generation_has_no_next() -> None:
    old = kept(generation=2**63 - 1)
    admission = answer(kept({"extendedResourceName": "example.com/x"}), old)
    assert errors_of(admission) == {
        ("metadata.generation", "Invalid", detail)
        for detail in ("must be greater than or equal to 0", "must not be decremented")
    }


# --- texts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"kind": None, "apiVersion": None},
        {"kind": "", "apiVersion": ""},
        {"apiVersion": "/"},
        {"apiVersion": "resource.k8s.io/"},
        {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1beta2"},
    ],
)
def test_an_object_need_not_say_what_it_is(said: dict[str, Any]) -> None:
    object_ = stored(answer(described() | said, version="v1beta2"))
    assert (object_["apiVersion"], object_["kind"]) == ("resource.k8s.io/v1", "DeviceClass")


@pytest.mark.parametrize(
    "said",
    [{"kind": "Other"}, {"apiVersion": "v1beta2"}, {"apiVersion": "resource.k8s.io/v1"}],
)
def test_an_object_may_not_say_that_it_is_another(said: dict[str, Any]) -> None:
    with pytest.raises(DecodeError, match="does not match the expected"):
        answer(described() | said, version="v1beta2")


@pytest.mark.parametrize("kind", ["DeviceClass", "DeviceTaintRule"])
def test_half_characters_are_replaced(kind: str) -> None:
    text = '{"metadata": {"name": "x", "annotations": {"a": "\\ud800"}}, "spec": %s}'
    object_ = stored(answer(text % json.dumps(RULE), kind=kind, version="v1beta2"))
    assert object_["metadata"]["annotations"] == {"a": "\ufffd"}


def class_text(parameters: str, rest: str = "") -> str:
    config = f'[{{"opaque": {{"driver": "d", "parameters": {parameters}}}}}]'
    metadata = '{"name": "x", "resourceVersion": "1", "generation": 3}'
    return f'{{"metadata": {metadata}, "spec": {{"config": {config}}}{rest}}}'


def test_parameters_are_kept_as_they_were_written_also_beside_an_unknown_field() -> None:
    text = '{"b":  1.50, "a": "\\u00e9"}'
    admission = answer(class_text(text, ', "unknown": null'), class_text(text))
    assert stored(admission)["metadata"]["generation"] == 3
    assert text.encode() in encode_json(admission.stored)


def test_the_length_of_parameters_is_that_of_their_text() -> None:
    padded = '{"a": 1' + " " * 10240 + "}"
    for rest in ("", ', "unknown": null'):
        admission = answer(class_text(padded, rest))
        assert {error.type.name for error in admission.errors} == {"TOO_LONG"}


def test_numbers_in_parameters_must_fit_a_float() -> None:
    admission = answer(class_text('{"a": 1e400}'))
    detail = (
        "error parsing data as JSON: json: cannot unmarshal number 1e400 into Go value of type "
        "float64"
    )
    assert errors_of(admission) == {("spec.config[0].opaque.parameters", "Invalid", detail)}


def test_a_quantity_may_be_a_number_beside_an_escaped_character() -> None:
    device = {"name": "a", "capacity": {"memory": {"value": 1.5}}}
    object_ = stored(
        answer(described(a_slice(device), annotations={"a": "😀"}), kind="ResourceSlice")
    )
    assert object_["spec"]["devices"][0]["capacity"]["memory"]["value"] == "1500m"


@pytest.mark.parametrize("field", ["selectors", "deviceClassName"])
@pytest.mark.parametrize("value", [None, "x", ["x"], [{"cel": {"expression": "true"}}]])
def test_fields_that_left_kubernetes_are_unknown_whatever_they_hold(field: str, value: Any) -> None:
    spec = RULE | {"deviceSelector": {"driver": "d", field: value}}
    kind = CATALOGUE.find("resource.k8s.io/v1", "DeviceTaintRule")
    data = json.dumps(described(spec)).encode()
    reading = read_json(data, kind, extensions=False)
    assert [remark.message for remark in reading.remarks] == [
        f'unknown field "spec.deviceSelector.{field}"'
    ]
    object_ = stored(answer(described(spec), kind="DeviceTaintRule"))
    assert object_["spec"]["deviceSelector"] == {"driver": "d"}


def test_a_hundred_unknown_fields_are_named() -> None:
    kind = CATALOGUE.find("resource.k8s.io/v1", "DeviceClass")
    data = json.dumps(described() | {f"unknown{number}": 1 for number in range(101)}).encode()
    assert len(read_json(data, kind, extensions=False).remarks) == 100


# --- times --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2024-01-01T01:00:00+24:00", "2023-12-31T01:00:00Z"),
        ("2024-01-01T01:00:00-00:60", "2024-01-01T02:00:00Z"),
        ("2024-01-01T1:02:03,9Z", "2024-01-01T01:02:03Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_times_are_read_as_go_reads_them(written: str, read: str | None) -> None:
    spec = {"taint": {"key": "k", "effect": "None", "timeAdded": written}}
    object_ = stored(answer(described(spec), kind="DeviceTaintRule"))
    assert object_["spec"]["taint"]["timeAdded"] == read


@pytest.mark.parametrize("written", ["2024-01-01T01:00:00+25:00", "2024-01-01T01:00:00+00:61"])
def test_clocks_more_than_a_day_ahead_do_not_exist(written: str) -> None:
    spec = {"taint": {"key": "k", "effect": "None", "timeAdded": written}}
    with pytest.raises(DecodeError):
        answer(described(spec), kind="DeviceTaintRule")


def test_the_first_instant_of_the_calendar_is_no_time_of_creation() -> None:
    zero = "0001-01-01T00:00:00Z"
    admission = answer(kept(creationTimestamp=zero), kept())
    assert "creationTimestamp" not in stored(admission)["metadata"]
    admission = answer(kept(creationTimestamp="2024-01-01T00:00:00Z"), kept(creationTimestamp=zero))
    assert errors_of(admission) == {("metadata.creationTimestamp", "Invalid", IMMUTABLE)}


def test_the_first_instant_of_the_calendar_is_no_time_of_a_condition() -> None:
    condition = {"type": "A", "status": "True", "reason": "r", "message": ""}
    status = {"conditions": [condition | {"lastTransitionTime": "0001-01-01T00:00:00Z"}]}
    admission = answer(
        kept(RULE) | {"status": status}, kept(RULE), kind="DeviceTaintRule", status=True
    )
    assert errors_of(admission) == {("status.conditions[0].lastTransitionTime", "Required", "")}


# --- declared rules and their hand-written twins --------------------------------------------


class Twins(NamedTuple):
    """A wrong object: what is said when it is sent, and again when it was there before."""

    kind: str
    spec: Any
    as_new: set[tuple[str, str, str]]
    as_before: set[tuple[str, str, str]]
    version: str = "v1"


LONG = "a" * 64
ALL_VALUES = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"
COUNTERS = a_slice(sharedCounters=[{"name": LONG, "counters": {LONG: {"value": "1"}}}])

RATCHETED = {
    "names of counters": Twins(
        "ResourceSlice",
        COUNTERS,
        {
            (f"spec.sharedCounters[0].{field}", "Invalid", "must be no more than 63 bytes")
            for field in ("name", "counters")
        },
        {
            (f"spec.sharedCounters[0].{field}", "Invalid", "must be no more than 63 characters")
            for field in ("name", "counters")
        },
    ),
    "an attribute without a value": Twins(
        "ResourceSlice",
        a_slice({"name": "a", "attributes": {"x": {}}}),
        {
            (
                "spec.devices[0].attributes[x]",
                "Invalid",
                f"must specify one of: {ALL_VALUES}",
            )
        },
        {("spec.devices[0].attributes[x]", "Invalid", ONE_VALUE)},
    ),
    "an attribute with an empty list": Twins(
        "ResourceSlice",
        a_slice({"name": "a", "attributes": {"x": {"ints": []}}}),
        {
            (
                "spec.devices[0].attributes[x].ints",
                "Invalid",
                "must not be empty if specified",
            ),
            (
                "spec.devices[0].attributes[x]",
                "Invalid",
                f"must specify one of: {ALL_VALUES}",
            ),
        },
        {("spec.devices[0].attributes[x].ints", "Invalid", "must not be empty if specified")},
    ),
    "an attribute with a value and an empty list": Twins(
        "ResourceSlice",
        a_slice({"name": "a", "attributes": {"x": {"int": 1, "ints": []}}}),
        {
            ("spec.devices[0].attributes[x].ints", "Invalid", "must not be empty if specified"),
            ("spec.devices[0].attributes[x]", "Invalid", ONE_VALUE),
        },
        {
            ("spec.devices[0].attributes[x].ints", "Invalid", "must not be empty if specified"),
            ("spec.devices[0].attributes[x]", "Invalid", ONE_VALUE),
        },
    ),
    "counters of a device in v1beta1": Twins(
        "ResourceSlice",
        a_slice({"name": "a", "basic": {"consumesCounters": [{"counterSet": "s"}]}}),
        {("spec.devices[0].basic.consumesCounters[0].counters", "Required", "")},
        {("spec.devices[0].consumesCounters[0].counters", "Required", "")},
        "v1beta1",
    ),
    "an extended resource": Twins(
        "DeviceClass",
        {"extendedResourceName": "cpu"},
        {
            (
                "spec.extendedResourceName",
                "Invalid",
                "a name must be a domain-prefixed path, such as 'example.com/my-prop'",
            )
        },
        {("spec.extendedResourceName", "Invalid", "must be a valid extended resource name")},
    ),
    "a driver with too many bytes": Twins(
        "DeviceClass",
        {"config": [{"opaque": {"driver": "é" * 40, "parameters": {}}}]},
        {
            (
                "spec.config[0].opaque.driver",
                "Invalid",
                CASELESS_SUBDOMAIN,
            ),
            ("spec.config[0].opaque.driver", "TooLong", "may not be more than 63 bytes"),
        },
        {
            ("spec.config[0].opaque.driver", "Invalid", SUBDOMAIN),
            ("spec.config[0].opaque.driver", "TooLong", "may not be more than 63 bytes"),
        },
    ),
    "an operation that does not exist": Twins(
        "ResourceSlice",
        a_slice(skipNodeOperations=["x"]),
        {
            (
                "spec.skipNodeOperations[0]",
                "NotSupported",
                'supported values: "*", "NodePrepareResources", "NodeUnprepareResources"',
            )
        },
        set(),
    ),
}


@pytest.mark.parametrize("row", RATCHETED.values(), ids=RATCHETED)
def test_declared_rules_are_silent_about_what_was_there_before(row: Twins) -> None:
    as_new = answer(described(row.spec), kind=row.kind, version=row.version)
    assert errors_of(as_new) == row.as_new
    old, new = kept(row.spec), kept(row.spec, labels={"a": "b"})
    as_before = answer(new, old, kind=row.kind, version=row.version)
    assert errors_of(as_before) == row.as_before


def counters(*names: str, name: str = "s") -> Any:
    entries = {entry: {"value": "1"} for entry in names}
    return {"name": name, "counters": entries}


@pytest.mark.parametrize(
    ("added", "detail"),
    [("fine", "must be no more than 63 characters"), (LONG + "b", "must be no more than 63 bytes")],
)
def test_a_key_that_a_map_had_before_is_known_although_the_map_changes(
    added: str, detail: str
) -> None:
    old = kept(a_slice(sharedCounters=[counters("a"), counters(LONG, name="t")]))
    new = kept(a_slice(sharedCounters=[counters(LONG, added, name="t")]))
    admission = answer(new, old, kind="ResourceSlice")
    assert errors_of(admission) == {("spec.sharedCounters[0].counters", "Invalid", detail)}


def template(derived: Any, **request: Any) -> Any:
    exactly = {"deviceClassName": "gpu", "derivedAttributes": [derived]}
    requests = [{"name": "r", "exactly": exactly}, {"name": "s", "exactly": {**request}}]
    constraints = [{"matchAttribute": "d.example.com/x"}]
    claim = {"spec": {"devices": {"requests": requests, "constraints": constraints}}}
    return kept(claim, namespace="default")


def test_requests_of_a_template_are_known_by_their_names() -> None:
    derived = {"name": "d.example.com/x"}
    old = template(derived, deviceClassName="a")
    admission = answer(template(derived, deviceClassName="b"), old, kind="ResourceClaimTemplate")
    assert errors_of(admission) == {("spec", "Invalid", IMMUTABLE)}


def test_a_request_that_asks_twice_is_checked_as_declared_only_when_it_is_new() -> None:
    alternative = {"name": "a", "deviceClassName": "no/class"}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}, "firstAvailable": [alternative]}
    claim = {"spec": {"devices": {"requests": [request]}}}
    twice = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
    place = "spec.spec.devices.requests[0]"
    kind = "ResourceClaimTemplate"
    assert errors_of(answer(described(claim), kind=kind)) == {
        (place, "Invalid", twice),
        (f"{place}.firstAvailable[0].deviceClassName", "Invalid", SUBDOMAIN),
    }
    old = kept(claim, namespace="default")
    new = kept(claim, namespace="default", labels={"a": "b"})
    assert errors_of(answer(new, old, kind=kind)) == {(place, "Invalid", twice)}


def test_too_many_taints_are_still_checked_for_their_effects() -> None:
    taints: list[Any] = [{"key": f"k{number}", "effect": "None"} for number in range(17)]
    taints[3] = {"key": "not a key", "effect": "x"}
    spec = a_slice({"name": "a", "taints": taints})
    admission = answer(described(spec), kind="ResourceSlice")
    assert errors_of(admission) == {
        ("spec.devices[0].taints", "TooMany", "must have at most 16 items"),
        (
            "spec.devices[0].taints[3].effect",
            "NotSupported",
            'supported values: "NoExecute", "NoSchedule", "None"',
        ),
    }


def test_too_many_devices_that_were_there_before_are_not_checked_one_by_one() -> None:
    devices = [{"name": f"d{number}", "taints": [{"key": "k"}]} for number in range(65)]
    spec = a_slice(*devices)
    old, new = kept(spec), kept(spec, labels={"a": "b"})
    admission = answer(new, old, kind="ResourceSlice")
    assert errors_of(admission) == {("spec.devices", "TooMany", "must have at most 64 items")}


@pytest.mark.parametrize(
    ("address", "detail"),
    [
        ("00010.009.8.7/024", 'must be in canonical form ("10.9.8.7/24")'),
        ("02001:00db8::01.2.3.4/0000064", 'must be in canonical form ("2001:db8::102:304/64")'),
        ("::ffff:10.9.8.7/120", 'must be in canonical form ("10.9.8.7/24")'),
        (
            "fe80::1%eth0/64",
            "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
        ),
    ],
)
def test_addresses_are_read_with_leading_zeros(address: str, detail: str) -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    allocation = {"devices": {"results": [result]}}
    report = {"driver": "d", "pool": "p", "device": "x", "networkData": {"ips": [address]}}
    claim = kept(CLAIM, namespace="default")
    admission = answer(
        claim | {"status": {"allocation": allocation, "devices": [report]}},
        claim | {"status": {"allocation": allocation}},
        kind="ResourceClaim",
        status=True,
    )
    assert errors_of(admission) == {("status.devices[0].networkData.ips[0]", "Invalid", detail)}


def test_a_long_key_is_cut_in_bytes() -> None:
    key = "日" * 40
    spec = a_slice({"name": "a", "attributes": {key: {"string": "x" * 65}}})
    fields = {error.field for error in answer(described(spec), kind="ResourceSlice").errors}
    cut = "日" * 15 + "\ufffd\ufffd" + "..." + "\ufffd" + "日" * 15
    assert fields == {"spec.devices[0].attributes", f"spec.devices[0].attributes[{cut}].string"}


def test_an_empty_list_of_counters_uses_no_feature() -> None:
    off = "DRAPartitionableDevices=false,DRADeviceCompatibilityGroups=false"
    off += ",DRAPartitionableDevicesType=false"
    consumption = {"counterSet": "s", "counters": {"c": {"value": "1"}}}
    new = kept(a_slice({"name": "a", "consumesCounters": [consumption]}))
    old = kept(a_slice(sharedCounters=[]))
    (device,) = stored(answer(new, old, kind="ResourceSlice", gates=off))["spec"]["devices"]
    assert device == {"name": "a"}


def test_what_a_first_status_lacks_is_not_taken_for_unchanged() -> None:
    kind = "ResourcePoolStatusRequest"
    old = kept({"driver": "d", "limit": 1})
    admission = answer(old | {"status": {}}, old, kind=kind, version="v1alpha3", status=True)
    assert errors_of(admission) == {("status.poolCount", "Required", "")}


def test_a_claim_of_v1beta1_comes_back_from_storage_with_the_defaults_of_v1() -> None:
    spec = {"devices": {"requests": [{"name": "r", "count": 2}]}}
    claim = kept(spec, namespace="default")
    admission = answer(claim, claim, kind="ResourceClaim", version="v1beta1", status=True)
    (request,) = stored(admission)["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "",
        "allocationMode": "ExactCount",
        "count": 2,
    }
