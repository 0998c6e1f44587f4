from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_json, decode_tree, dotted, encode_json, fitting, to_tree
from moorage.api.core.namespace import Secret
from moorage.api.errors import DecodeError
from moorage.api.field_path import MapKey
from moorage.api.resource import v1
from moorage.api.timestamp import MicroTimestamp
from tests.strategies import instances

RESOURCE_KINDS = [kind for kind in CATALOGUE if kind.group == "resource.k8s.io"]


def ids(kind: Any) -> str:
    return f"{kind.version}-{kind.name}"


# --- round trips --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RESOURCE_KINDS, ids=ids)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_written_reads_back_equal(kind: Any, data: st.DataObject) -> None:
    value = data.draw(instances(kind.struct))
    text = encode_json(value)
    decoded = decode_json(text, kind.struct)
    assert decoded.value == value
    assert decoded.unknown == ()
    assert encode_json(decoded.value) == text


@pytest.mark.parametrize("kind", RESOURCE_KINDS, ids=ids)
@settings(max_examples=25)
@given(data=st.data())
def test_the_fast_and_the_tolerant_reader_agree(kind: Any, data: st.DataObject) -> None:
    tree = to_tree(data.draw(instances(kind.struct)))
    quick = fitting(tree, kind.struct)
    tree["surely-unknown"] = 1  # which only the tolerant reader takes
    slow = decode_tree(tree, kind.struct)
    assert slow.unknown == (("surely-unknown",),)
    if quick is not None:
        assert slow.value == quick


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "devices", "name", "requests", "x"]) | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", RESOURCE_KINDS, ids=ids)
@settings(max_examples=60)
@given(tree=json_values)
def test_arbitrary_json_is_read_or_refused_with_a_decode_error(kind: Any, tree: Any) -> None:
    try:
        decoded = decode_tree(tree, kind.struct)
    except DecodeError:
        return
    encode_json(decoded.value)


# --- as Go reads --------------------------------------------------------------------------


def read_slice(text: str) -> v1.ResourceSlice:
    return decode_json(text.encode(), v1.ResourceSlice).value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"spec": {"driver": null}}', v1.ResourceSliceSpec()),
        ('{"spec": null}', v1.ResourceSliceSpec()),
        ('{"spec": {"devices": null}}', v1.ResourceSliceSpec()),
        ('{"spec": {"devices": []}}', v1.ResourceSliceSpec(devices=())),
        ('{"spec": {"devices": [null]}}', v1.ResourceSliceSpec(devices=(v1.Device(),))),
        ('{"spec": {"nodeName": ""}}', v1.ResourceSliceSpec(node_name="")),
        (
            '{"spec": {"devices": [{"attributes": {"a": null}}]}}',
            v1.ResourceSliceSpec(devices=(v1.Device(attributes={"a": v1.DeviceAttribute()}),)),
        ),
    ],
)
def test_null_is_what_absence_is(text: str, expected: v1.ResourceSliceSpec) -> None:
    assert read_slice(text).spec == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"spec": []}', "spec: expected a ResourceSliceSpec (a map), got a list"),
        ('{"spec": {"driver": 1}}', "spec.driver: expected a string, got a number"),
        ('{"spec": {"devices": {}}}', "spec.devices: expected a list, got a map"),
        (
            '{"spec": {"pool": {"generation": 1.5}}}',
            "spec.pool.generation: expected an integer, got a number",
        ),
        (
            '{"spec": {"pool": {"generation": 9223372036854775808}}}',
            (
                "spec.pool.generation: 9223372036854775808 is beyond -9223372036854775808 "
                "to 9223372036854775807"
            ),
        ),
        (
            '{"spec": {"devices": [{"attributes": {"flags": []}}]}}',
            "spec.devices[0].attributes[flags]: expected a DeviceAttribute (a map), got a list",
        ),
        (
            '{"spec": {"devices": [{"capacity": {"m": {"value": "x"}}}]}}',
            (
                "spec.devices[0].capacity[m].value: quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
        (
            '{"metadata": {"creationTimestamp": "yesterday"}}',
            (
                'metadata.creationTimestamp: parsing time "yesterday" as '
                '"2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"'
            ),
        ),
        ("[]", "the object: expected a ResourceSlice (a map), got a list"),
        ("{", "not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        ('{"spec": NaN}', "not valid JSON: NaN is not a JSON number"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read_slice(text)
    assert str(caught.value).startswith(message)


def test_the_place_of_a_refusal_is_data_too() -> None:
    with pytest.raises(DecodeError) as caught:
        read_slice('{"spec": {"devices": [{"attributes": {"a/b": {"int": "1"}}}]}}')
    assert caught.value.place == ("spec", "devices", 0, "attributes", MapKey("a/b"), "int")


def test_unknown_fields_are_named_as_kubernetes_names_them() -> None:
    text = '{"spec": {"x": 1, "devices": [{"attributes": {"a": {"y": 2, "int": 1}}}]}}'
    decoded = decode_json(text.encode(), v1.ResourceSlice)
    assert [dotted(place) for place in decoded.unknown] == [
        "spec.x",
        "spec.devices[0].attributes.a.y",
    ]


@pytest.mark.parametrize("number", ["1.5", "1e3", "0.1", "5", '"5"', '" 5 "'])
def test_a_quantity_may_be_a_bare_number(number: str) -> None:
    text = f'{{"spec": {{"devices": [{{"capacity": {{"m": {{"value": {number}}}}}}}]}}}}'
    devices = read_slice(text).spec.devices
    assert devices is not None
    assert str(devices[0].capacity["m"].value) == {"1e3": "1e3", "0.1": "100m", "1.5": "1500m"}.get(
        number, "5"
    )


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert read_slice(r'{"metadata": {"name": "a\ud800b"}}').metadata.name == "a\ufffdb"


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    text = '{"spec":' + "[" * 100_000 + "]" * 100_000 + "}"
    with pytest.raises(DecodeError):
        decode_json(text.encode(), v1.ResourceSlice)


# --- what is written ----------------------------------------------------------------------


def test_empty_optional_fields_are_left_out_and_required_ones_written() -> None:
    claim = v1.ResourceClaim()
    assert json.loads(encode_json(claim)) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {},
        "spec": {"devices": {"requests": None}},
        "status": {},
    }


def test_opaque_parameters_are_kept_as_they_were_written() -> None:
    text = b'{"spec":{"config":[{"opaque":{"driver":"d","parameters":{"b": 1e2,  "a":[null]}}}]}}'
    value = decode_json(text, v1.DeviceClass).value
    opaque = value.spec.config[0].opaque
    assert opaque is not None
    assert bytes(opaque.parameters) == b'{"b": 1e2,  "a":[null]}'
    assert b'"parameters":{"b": 1e2,  "a":[null]}' in encode_json(value)


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    text = b'{"metadata": {"creationTimestamp": "2024-02-29T23:30:00.75-01:30"}}'
    value = decode_json(text, v1.DeviceClass).value
    assert json.loads(encode_json(value))["metadata"]["creationTimestamp"] == "2024-03-01T01:00:00Z"


def test_structs_are_frozen() -> None:
    with pytest.raises(AttributeError):
        v1.Device().name = "x"  # type: ignore[misc]


def test_structs_are_not_tracked_by_the_garbage_collector() -> None:
    import gc

    value = decode_json(b'{"spec":{"devices":[{"name":"a"}]}}', v1.ResourceSlice).value
    assert not gc.is_tracked(value)
    assert isinstance(value, msgspec.Struct)


# --- bytes and times, as Go reads them ------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", ""),
        ("aGk=", "aGk="),
        ("aG\nk=\r\n", "aGk="),  # line breaks do not count
        ("aB==", "aA=="),  # bits that no byte needs do not count
        ([104, 105], "aGk="),
        (None, ""),
    ],
)
def test_bytes_are_read_as_go_reads_them(written: Any, read: str) -> None:
    decoded = decode_tree({"data": {"a": written}}, Secret).value
    assert decoded.data == {"a": read}
    assert decode_json(msgspec.json.encode({"data": {"a": written}}), Secret).value == decoded


@pytest.mark.parametrize(
    ("written", "position"),
    [("a", 0), ("aGk", 0), ("aG!k", 2), ("aG=k", 2), ("a===", 1), ("aA==aA==", 4), ("é", 0)],
)
def test_text_that_is_no_base64_is_refused_with_its_position(written: str, position: int) -> None:
    with pytest.raises(DecodeError) as error:
        decode_tree({"data": {"a": written}}, Secret)
    assert str(error.value) == f"data[a]: illegal base64 data at input byte {position}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("2026-01-02", ' as "2006-01-02T15:04:05.000000Z07:00": cannot parse "" as "T"'),
        (
            "2026-01-02T03:04:05Z",
            ' as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
        ),
        (
            "2026-01-02T03:04:05.1Z",
            ' as "2006-01-02T15:04:05.000000Z07:00": cannot parse ".1Z" as ".000000"',
        ),
        ("2026-01-02T03:04:05.000001Zx", ': extra text: "x"'),
    ],
)
def test_a_microtime_has_six_digits(text: str, fault: str) -> None:
    with pytest.raises(DecodeError) as error:
        MicroTimestamp.parse(text)
    assert str(error.value) == f'parsing time "{text}"{fault}'
    assert str(MicroTimestamp.parse("2026-01-02T03:04:05.000001Z")) == "2026-01-02T03:04:05.000001Z"
