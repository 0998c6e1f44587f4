"""The steps of admission, and laws that hold for every kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.catalogue import CATALOGUE, SERVED
from moorage.api.codec import decode_json, decode_tree, encode_json, to_tree
from moorage.api.documents import read
from moorage.api.errors import DecodeError
from moorage.api.gates import Gates
from moorage.api.resource import v1
from moorage.api.timestamp import Timestamp
from moorage.validation.errors import (
    ERRORS_MAX,
    EXPRESSIONS_BYTES_MAX,
    TEXT_BYTES_MAX,
    FieldError,
)
from moorage.validation.registry import (
    CONFLICT,
    WRONG_NAMESPACE,
    RegistryResult,
    before_create,
    before_status_update,
    before_update,
    defaulted_hub,
    strategy_for,
    with_resource_version,
)
from moorage.validation.strategy import Context
from tests.strategies import instances

NOW = Timestamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
CONTEXT = Context(gates=Gates.parse(), now=NOW, extensions=False)
OFF = CONTEXT._replace(gates=Gates.parse(preset="kubernetes-1.37"))

OWNED = [kind for kind in CATALOGUE if kind.group == "resource.k8s.io"]


def create(text: str, *, version: str = "v1", context: Context = CONTEXT) -> RegistryResult:
    (document,) = read(text.encode(), source="test")
    tree: Any = document.tree
    kind = CATALOGUE.find(f"resource.k8s.io/{version}", tree["kind"])
    return before_create(decode_tree(tree, kind.struct).value, kind, context)


def texts(admission: RegistryResult) -> list[str]:
    return [str(error) for error in admission.errors]


SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
"""

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: a
      exactly: {deviceClassName: gpu}
"""


# --- laws ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OWNED, ids=lambda kind: f"{kind.version}-{kind.name}")
@settings(max_examples=30)
@given(data=st.data())
def test_validation_never_raises_on_an_object(kind: Any, data: st.DataObject) -> None:
    value = data.draw(instances(kind.struct))
    old = data.draw(instances(kind.struct))
    context = data.draw(st.sampled_from([CONTEXT, OFF]))
    admission = before_create(value, kind, context)
    assert (admission.stored is None) == bool(admission.errors or admission.refused)
    for error in admission.errors:
        assert str(error)
    hub_old = before_create(old, kind, context).stored
    if hub_old is not None:
        before_update(value, with_resource_version(hub_old, "1"), kind, context)
        before_status_update(value, with_resource_version(hub_old, "1"), kind, context)


@pytest.mark.parametrize("kind", OWNED, ids=lambda kind: f"{kind.version}-{kind.name}")
@settings(max_examples=60)
@given(
    spec=st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["devices", "requests", "name", "exactly", "driver", "pool", "attributes"]
                ),
                inner,
                max_size=3,
            )
        ),
    )
)
def test_validation_never_raises_on_arbitrary_json(kind: Any, spec: Any) -> None:
    tree = {"metadata": {"name": "x"}, "spec": spec}
    try:
        value = decode_tree(tree, kind.struct).value
    except DecodeError:
        return
    before_create(value, kind, CONTEXT)


@pytest.mark.parametrize("kind", OWNED, ids=lambda kind: f"{kind.version}-{kind.name}")
@settings(max_examples=30)
@given(data=st.data())
def test_what_was_stored_is_admitted_again_unchanged(kind: Any, data: st.DataObject) -> None:
    hub_kind = CATALOGUE.find(kind.hub_version, kind.name)
    stored = before_create(data.draw(instances(kind.struct)), kind, CONTEXT).stored
    if stored is None:
        return
    again = before_create(
        decode_json(encode_json(stored), hub_kind.struct).value, hub_kind, CONTEXT
    )
    assert again.errors == ()
    assert to_tree(again.stored) == to_tree(stored)


# --- create -------------------------------------------------------------------------------


def test_a_request_gets_mode_and_count() -> None:
    claim = create(CLAIM).stored
    assert isinstance(claim, v1.ResourceClaim)
    (request,) = claim.spec.devices.requests or ()
    assert request.exactly is not None
    assert (request.exactly.allocation_mode, request.exactly.count) == ("ExactCount", 1)


def test_a_taint_gets_the_time_it_came_in_whole_seconds() -> None:
    text = SLICE + "  devices: [{name: d, taints: [{key: a, effect: NoSchedule}]}]"
    stored = create(text).stored
    assert stored.spec.devices[0].taints[0].time_added == NOW


def test_all_errors_are_gathered() -> None:
    text = SLICE.replace("gpu.example.com", "!").replace("name: n,", "name: UPPER,")
    assert [error.field for error in create(text).errors] == ["spec.driver", "spec.pool.name"]


def test_the_status_of_a_new_claim_is_dropped() -> None:
    text = CLAIM + "status: {reservedFor: [{resource: pods, name: p, uid: u}]}"
    assert create(text).stored.status == v1.ResourceClaimStatus()


def test_what_only_the_server_sets_is_dropped() -> None:
    text = CLAIM.replace("{name: c}", "{name: c, uid: u, generation: 7, selfLink: x}")
    metadata = create(text).stored.metadata
    assert (metadata.uid, metadata.self_link) == ("", "")


def test_an_empty_list_is_stored_as_none() -> None:
    text = SLICE + "  devices: []"
    assert create(text).stored.spec.devices is None


def test_an_upper_case_driver_gives_a_warning() -> None:
    admission = create(SLICE.replace("gpu.example.com", "GPU.example.com"))
    assert admission.warnings == (
        (
            "spec.driver: driver names should be lowercase; "
            '"GPU.example.com" contains uppercase characters'
        ),
    )


def test_declared_rules_are_placed_in_the_layout_that_was_written() -> None:
    text = """
    kind: ResourceClaim
    metadata: {name: c}
    spec:
      devices:
        requests:
        - {name: a, deviceClassName: gpu, allocationMode: Some, tolerations: [{value: "!"}]}
    """
    assert [error.field for error in create(text, version="v1beta1").errors] == [
        "spec.devices.requests[0].allocationMode",
        "spec.devices.requests[0].exactly.tolerations[0].value",
    ]


# --- gates --------------------------------------------------------------------------------

GATED = {
    "DRAListTypeAttributes": "attributes: {a: {strings: [x]}}",
    "DRAPartitionableDevices": "consumesCounters: [{counterSet: s, counters: {c: {value: 1}}}]",
    "DRAConsumableCapacity": "allowMultipleAllocations: true",
    "DRADeviceTaints": "taints: [{key: a, effect: None, timeAdded: 2024-01-01T00:00:00Z}]",
    "DRADeviceBindingConditions": "bindingConditions: [a]\n    bindingFailureConditions: [b]",
    "DRANodeAllocatableResources": "nodeAllocatableResources: {cpu: {overhead: {perPod: 1}}}",
}


@pytest.mark.parametrize("gate", GATED)
def test_a_field_of_a_disabled_feature_is_dropped_unless_it_was_in_use(gate: str) -> None:
    text = SLICE + f"  devices:\n  - name: d\n    {GATED[gate]}\n"
    plain = SLICE + "  devices:\n  - name: d\n"
    off = CONTEXT._replace(gates=Gates.parse(f"{gate}=false"))
    used = create(text).stored
    assert used is not None
    assert used.spec != create(plain).stored.spec
    dropped = create(text, context=off)
    if gate == "DRAListTypeAttributes":  # An attribute without a value is no attribute.
        assert [error.field for error in dropped.errors] == ["spec.devices[0].attributes[a]"]
    else:
        assert dropped.stored.spec == create(plain).stored.spec
    kind = CATALOGUE.find("resource.k8s.io/v1", "ResourceSlice")
    kept = before_update(used, with_resource_version(used, "1"), kind, off)
    assert kept.stored.spec == used.spec


ALL = Context(gates=Gates.parse(), now=NOW)
FEW = Context(
    gates=Gates.parse(preset="kubernetes-1.37", emulated_version="1.34"),
    now=NOW,
)
DROPPED = "fields of {} are dropped, because its feature gate is off"
POD_SPEC = {"containers": [{"name": "a", "image": "b"}], "restartPolicy": "Never"}
GROUPED = {**POD_SPEC, "restartPolicy": "Always", "schedulingGroup": {"podGroupName": "g"}}
LABELS = {"app": "a"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": GROUPED}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "gates"),
    [
        ("resource.k8s.io/v1", "DeviceClass", {"extendedResourceName": "example.com/gpu"},
         ["DRAExtendedResource"]),
        ("v1", "Pod", GROUPED, ["GenericWorkload"]),
        ("apps/v1", "Deployment", {"selector": {"matchLabels": LABELS}, "template": TEMPLATE},
         ["GenericWorkload"]),
        ("apps/v1", "DaemonSet", {"selector": {"matchLabels": LABELS}, "template": TEMPLATE},
         ["GenericWorkload"]),
        ("batch/v1", "Job",
         {"manualSelector": True, "selector": {"matchLabels": LABELS},
          "template": {"metadata": {"labels": LABELS}, "spec": POD_SPEC},
          "scheduling": {"schedulingPolicy": {"basic": {}}}},
         ["WorkloadWithJob"]),
        ("scheduling.k8s.io/v1beta1", "PodGroup",
         {"schedulingPolicy": {"basic": {}}, "preemptionPolicy": "Never",
          "schedulingConstraints": {"topology": [{"key": "a"}]}},
         ["PodGroupPreemptionPolicy", "TopologyAwareWorkloadScheduling"]),
        ("scheduling.k8s.io/v1beta1", "Workload",
         {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}},
                                 "preemptionPolicy": "Never"}]},
         ["PodGroupPreemptionPolicy"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_whoever_loses_fields_with_a_feature_is_told(
    api_version: str, kind: str, spec: dict[str, Any], gates: list[str]
) -> None:
    found = CATALOGUE.find(api_version, kind)
    value = decode_tree({"metadata": {"name": "a"}, "spec": spec}, found.struct).value
    complete, partial = (before_create(value, found, context) for context in (ALL, FEW))
    assert (complete.errors, complete.warnings) == ((), ())
    assert partial.warnings == tuple(DROPPED.format(gate) for gate in gates)
    assert partial.stored.spec != complete.stored.spec
    # What is in use already stays, and there is nothing to tell.
    old = with_resource_version(complete.stored, "1")
    again = before_update(old, old, CATALOGUE.find(found.hub_version, kind), FEW)
    assert (again.errors, again.warnings) == ((), ())
    assert again.stored.spec == complete.stored.spec


def test_whoever_loses_fields_of_a_status_is_told() -> None:
    kind = CATALOGUE.find("v1", "Pod")
    tree: dict[str, Any] = {"metadata": {"name": "a"}, "spec": POD_SPEC}
    old = with_resource_version(
        before_create(decode_tree(tree, kind.struct).value, kind, FEW).stored, "1"
    )
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": []}}
    new = decode_tree({**tree, "status": status}, kind.struct).value
    admission = before_status_update(new, old, kind, FEW)
    assert DROPPED.format("DRAExtendedResource") in admission.warnings


@pytest.mark.parametrize("kind", SERVED, ids=lambda kind: f"{kind.api_version}-{kind.name}")
@settings(max_examples=15)
@given(data=st.data())
def test_nothing_is_dropped_silently(kind: Any, data: st.DataObject) -> None:
    value = defaulted_hub(data.draw(instances(kind.struct)), kind, FEW)
    strategy = strategy_for(kind)
    is_same = strategy.prepare_for_create(value, ALL) == strategy.prepare_for_create(value, FEW)
    assert is_same == (not list(strategy.disabled_gates(value, None, FEW)))


# --- update -------------------------------------------------------------------------------

SLICE_KIND = CATALOGUE.find("resource.k8s.io/v1", "ResourceSlice")
CLAIM_KIND = CATALOGUE.find("resource.k8s.io/v1", "ResourceClaim")


def stored(text: str) -> Any:
    return with_resource_version(create(text).stored, "5")


def changed(value: Any, **spec: Any) -> Any:
    return msgspec.structs.replace(value, spec=msgspec.structs.replace(value.spec, **spec))


def test_a_changed_spec_is_a_new_generation() -> None:
    old = stored(SLICE)
    assert before_update(old, old, SLICE_KIND, CONTEXT).stored.metadata.generation == 1
    new = changed(old, devices=(v1.Device(name="d"),))
    assert before_update(new, old, SLICE_KIND, CONTEXT).stored.metadata.generation == 2


def test_a_slice_stays_with_its_node() -> None:
    old = stored(SLICE)
    admission = before_update(changed(old, node_name="m"), old, SLICE_KIND, CONTEXT)
    assert texts(admission) == ['spec.nodeName: Invalid value: "m": field is immutable']


def test_the_spec_of_a_claim_is_immutable() -> None:
    old = stored(CLAIM)
    new = changed(old, devices=v1.DeviceClaim())
    assert [e.field for e in before_update(new, old, CLAIM_KIND, CONTEXT).errors] == ["spec"]


def test_an_update_of_an_old_revision_is_a_conflict() -> None:
    old = stored(CLAIM)
    assert (
        before_update(with_resource_version(old, "4"), old, CLAIM_KIND, CONTEXT).refused == CONFLICT
    )


def test_an_update_in_another_namespace_is_refused() -> None:
    old = stored(CLAIM)
    metadata = msgspec.structs.replace(old.metadata, namespace="other")
    new = msgspec.structs.replace(old, metadata=metadata)
    assert before_update(new, old, CLAIM_KIND, CONTEXT).refused == WRONG_NAMESPACE


def test_an_update_of_the_status_leaves_the_spec_alone() -> None:
    old = stored(CLAIM)
    new = changed(old, devices=v1.DeviceClaim())
    assert before_status_update(new, old, CLAIM_KIND, CONTEXT).stored.spec == old.spec


# --- extensions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "is_extension"),
    [("supported-models", True), ("a.b/list-of", True), ("-a", False), ("a b", False)],
)
def test_hyphens_in_attribute_names_are_an_extension(name: str, is_extension: bool) -> None:
    text = SLICE + f"  devices: [{{name: d, attributes: {{{name}: {{int: 1}}}}}}]"
    assert create(text).errors
    relaxed = create(text, context=CONTEXT._replace(extensions=True))
    assert (relaxed.errors == ()) is is_extension


def test_taint_rules_may_select_by_class_and_expression() -> None:
    text = """
    kind: DeviceTaintRule
    metadata: {name: r}
    spec:
      deviceSelector: {deviceClassName: UPPER, selectors: [{cel: {expression: ""}}, {}]}
      taint: {key: a, effect: NoExecute}
    """
    assert [error.field for error in create(text).errors] == [
        "spec.deviceSelector.deviceClassName",
        "spec.deviceSelector.selectors[0].cel.expression",
        "spec.deviceSelector.selectors[1].cel",
    ]


# --- many errors ----------------------------------------------------------------------------------


def _errors_of(tree: dict[str, Any]) -> tuple[FieldError, ...]:
    kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
    return before_create(decode_tree(tree, kind.struct).value, kind, CONTEXT).errors


def test_a_validation_ends_when_it_has_found_enough() -> None:
    metadata = {"name": "a", "ownerReferences": [{}] * 9999}
    errors = _errors_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert 0 < len(errors) <= ERRORS_MAX
    assert errors[0].field == "metadata.ownerReferences[0].apiVersion"


def test_errors_that_show_a_large_value_each_are_shown_up_to_a_bound() -> None:
    spec = {"scopes": [f"scope-{number}" for number in range(5000)]}
    errors = _errors_of(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a"}, "spec": spec}
    )
    assert errors
    assert sum(len(error.body) for error in errors[:-1]) <= TEXT_BYTES_MAX


def test_errors_found_before_are_not_counted() -> None:
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"ownerReferences": [{}]}}
    first = _errors_of(tree)
    for _ in range(ERRORS_MAX // len(first) + 1):
        assert _errors_of(tree) == first


def test_the_expressions_of_an_object_are_bound_before_they_are_compiled() -> None:
    def claim(count: int) -> dict[str, Any]:
        # Such texts do not compile, so that compiling them takes no time.
        texts = [f"{number}{'!' * 9999}" for number in range(count)]
        selectors = [{"cel": {"expression": text}} for text in texts]
        parts = [selectors[start : start + 8] for start in range(0, count, 8)]
        requests = [
            {"name": f"r{number}", "exactly": {"deviceClassName": "a", "selectors": part}}
            for number, part in enumerate(parts)
        ]
        head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        return {**head, "metadata": {"name": "a"}, "spec": {"devices": {"requests": requests}}}

    detail = f"all expressions together may not have more than {EXPRESSIONS_BYTES_MAX} bytes"
    within = EXPRESSIONS_BYTES_MAX // 10_000
    assert detail not in {error.detail for error in _errors_of(claim(within))}
    refused = [error.field for error in _errors_of(claim(within + 2)) if error.detail == detail]
    assert refused == [
        f"spec.devices.requests[1].exactly.selectors[{number}].cel.expression" for number in (5, 6)
    ]


def test_large_regular_expressions_count_as_long_expressions() -> None:
    texts = [rf"'a'.matches('\\pL{{{number}}}')" for number in (150, 151, 152, 152, 152, 153, 154)]
    selectors = [{"cel": {"expression": text}} for text in texts]
    request = {"name": "r", "exactly": {"deviceClassName": "a", "selectors": selectors}}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    spec = {"devices": {"requests": [request]}}
    errors = _errors_of({**head, "metadata": {"name": "a"}, "spec": spec})
    detail = f"all expressions together may not have more than {EXPRESSIONS_BYTES_MAX} bytes"
    assert [(error.field, error.detail) for error in errors] == [
        (f"spec.devices.requests[0].exactly.selectors[{number}].cel.expression", detail)
        for number in (5, 6)
    ]
