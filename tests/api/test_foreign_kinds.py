"""Kinds that others own: nothing is lost on the way in and out, whatever their fields hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

from moorage.api import core, events, scheduling
from moorage.api.catalogue import ASKED, CATALOGUE, KINDS, SERVED, from_hub, to_hub
from moorage.api.codec import decode_json, decode_tree, encode_json, to_tree
from moorage.api.errors import DecodeError
from moorage.api.kinds import Kind
from moorage.api.scheduler_config import (
    KubeSchedulerConfiguration,
    duration_ns,
    dynamic_resources_args,
)
from moorage.api.scheduler_plugin_args import DynamicResourcesArgs
from moorage.api.scheduling import v1alpha2
from moorage.api.structs import EXTRA, Open
from moorage.kit.go_duration import duration_text
from tests.corpus import corpus
from tests.strategies import UNKNOWN_NAMES, full, instances

FOREIGN = [kind for kind in KINDS if issubclass(kind.struct, Open)]

quick = settings(
    max_examples=10,
    suppress_health_check=list(HealthCheck),
)


def titled(kind: Kind) -> str:
    return f"{kind.api_version}/{kind.name}"


each_kind = pytest.mark.parametrize("kind", FOREIGN, ids=titled)


# --- laws ---------------------------------------------------------------------------------


@each_kind
def test_decoding_what_was_encoded_gives_the_same_object(kind: Kind) -> None:
    @quick
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        value = data.draw(instances(kind.struct))
        text = encode_json(value)
        assert decode_json(text, kind.struct) == (value, ())
        assert decode_tree(to_tree(value), kind.struct) == (value, ())
        assert json.loads(text) == to_tree(value)

    holds()


def test_fields_that_are_called_as_extra_fields_are_in_between_are_nothing_special() -> None:
    nodes = b'{"nodeName":5}'
    tree = (
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"\x7fextra":"x"}},'
        b'"spec":{"\x7fextra":%b,"\\u007fextra":%b,"more":{"\x7fextra":%b},"containers":[]}}'
    ) % (nodes, nodes, nodes)
    pod = decode_json(tree, core.Pod).value
    assert pod.spec.node_name == ""
    assert pod.spec.extra == {EXTRA: {"nodeName": 5}, "more": {EXTRA: {"nodeName": 5}}}
    assert decode_json(encode_json(pod), core.Pod) == (pod, ())
    assert to_tree(pod)["spec"]["more"] == {EXTRA: {"nodeName": 5}}
    assert to_tree(pod)["metadata"]["labels"] == {EXTRA: "x"}


@each_kind
def test_every_field_is_written_and_read_back(kind: Kind) -> None:
    value = full(kind.struct)
    tree = json.loads(encode_json(value))
    assert decode_tree(tree, kind.struct) == (value, ())
    assert len(tree) == len(fields(kind.struct)) - 1  # all but `extra`


@each_kind
def test_unknown_fields_survive_at_every_depth(kind: Kind) -> None:
    tree = to_tree(full(kind.struct))
    added = sum(1 for _ in _add_unknown(tree, kind.struct))
    decoded, unknown = decode_json(json.dumps(tree).encode(), kind.struct)
    assert (json.loads(encode_json(decoded)), unknown) == (tree, ())
    assert added > 0


@each_kind
def test_null_is_absence_for_every_field(kind: Kind) -> None:
    nulls = dict.fromkeys(to_tree(full(kind.struct)))
    assert decode_tree(nulls, kind.struct).value == kind.struct()


def _add_unknown(tree: Any, annotation: Any) -> Iterator[str]:
    """Put a field that nobody declares into the JSON of every Open struct, and name the struct."""
    arguments = get_args(annotation)
    match tree:
        case list():
            for item in tree:
                yield from _add_unknown(item, arguments[0])
        case dict() if get_origin(annotation) is dict:
            for item in tree.values():
                yield from _add_unknown(item, arguments[1])
        case dict() if arguments:
            yield from _add_unknown(tree, arguments[0])
        case dict() if isinstance(annotation, type) and issubclass(annotation, Struct):
            hints = get_type_hints(annotation, include_extras=True)
            for info in fields(annotation):
                annotation_of_field = _without_none(hints[info.name])
                yield from _add_unknown(tree.get(info.encode_name), annotation_of_field)
            if issubclass(annotation, Open):
                tree[UNKNOWN_NAMES[0]] = {"a": [1, "x", None, 2.5]}
                yield annotation.__name__


def _without_none(annotation: Any) -> Any:
    some = [argument for argument in get_args(annotation) if argument is not NoneType]
    return some[0] if NoneType in get_args(annotation) else annotation


# --- golden objects -----------------------------------------------------------------------


def _golden() -> Iterator[dict[str, Any]]:
    for path in sorted(corpus("golden").glob("*.json")):
        yield from _objects(json.loads(path.read_text()))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        name = (str(value.get("apiVersion")), str(value.get("kind")))
        if "metadata" in value and "request" not in value and name in CATALOGUE:
            yield value
        else:
            for key, inner in value.items():
                # Requests are what users wrote, not what a server returned.
                if key != "request":
                    yield from _objects(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


def test_golden_objects_are_written_back_as_they_were_read() -> None:
    found: dict[str, int] = {}
    for tree in _golden():
        # Taking entries out of the recorded annotations left empty maps behind.
        if not tree["metadata"].get("annotations"):
            tree["metadata"].pop("annotations", None)
        kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
        decoded = decode_json(json.dumps(tree).encode(), kind.struct)
        assert json.loads(encode_json(decoded.value)) == tree, tree["metadata"]["name"]
        assert decoded.unknown == (), tree["metadata"]["name"]
        found[kind.name] = found.get(kind.name, 0) + 1
    assert found["Pod"] > 40
    assert found["PodGroup"] > 3


# --- what is absent -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"status":{}}', None),
        (b'{"status":{"nodeAllocatableResourceClaimStatuses":null}}', None),
        (b'{"status":{"nodeAllocatableResourceClaimStatuses":[]}}', ()),
    ],
)
def test_absent_and_empty_claim_lists_of_a_pod_status_differ(
    text: bytes, expected: tuple[()] | None
) -> None:
    status = decode_json(text, core.Pod).value.status
    assert status.node_allocatable_resource_claim_statuses == expected


def test_times_that_kubernetes_writes_as_null_are_written_as_null() -> None:
    assert to_tree(core.PodCondition(type="Ready", status="True")) == {
        "type": "Ready",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }


@pytest.mark.parametrize(
    ("struct", "name"),
    [
        (core.PodStatus, "hostIP"),
        (core.PodStatus, "podIPs"),
        (core.PodSpec, "hostPID"),
        (core.PodSpec, "setHostnameAsFQDN"),
        (core.ContainerPort, "hostIP"),
        (core.ContainerStatus, "imageID"),
        (core.ContainerStatus, "containerID"),
        (core.ResourceHealth, "resourceID"),
        (core.NodeSpec, "providerID"),
        (core.NodeSystemInfo, "systemUUID"),
        (core.DaemonEndpoint, "Port"),
        (core.Event, "reportingComponent"),
    ],
)
def test_names_that_are_not_camel_case_are_exact(struct: type[Struct], name: str) -> None:
    assert name in to_tree(full(struct))


# --- the catalogue ------------------------------------------------------------------------


def test_kinds_are_unique_and_named_like_their_structs() -> None:
    assert len({(kind.api_version, kind.name) for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert kind.struct.__name__ == kind.name
        assert (kind.api_version, kind.name) in CATALOGUE


@pytest.mark.parametrize("kind", KINDS, ids=titled)
def test_the_hub_of_a_kind_is_a_kind_and_its_own_hub(kind: Kind) -> None:
    hub = CATALOGUE.find(kind.hub_version, kind.name)
    assert hub.hub_version == kind.hub_version
    assert (hub.plural, hub.namespaced) == (kind.plural, kind.namespaced)


@pytest.mark.parametrize("kind", FOREIGN, ids=titled)
def test_a_struct_without_apiversion_is_of_its_hub(kind: Kind) -> None:
    if kind.api_version == kind.hub_version:
        value = to_tree(kind.struct())
        assert (value["apiVersion"], value["kind"]) == (kind.api_version, kind.name)


@pytest.mark.parametrize(
    ("short_name", "plural"),
    [
        ("po", "pods"), ("no", "nodes"), ("ns", "namespaces"), ("cm", "configmaps"),
        ("sa", "serviceaccounts"), ("quota", "resourcequotas"), ("ev", "events"),
        ("deploy", "deployments"), ("rs", "replicasets"), ("ds", "daemonsets"),
        ("sts", "statefulsets"), ("pc", "priorityclasses"),
    ],
)  # fmt: skip
def test_short_names_are_those_of_kubectl(short_name: str, plural: str) -> None:
    assert {kind.plural for kind in SERVED if short_name in kind.short_names} == {plural}


def test_kinds_of_files_and_parts_are_read_but_not_served() -> None:
    others = {kind.name for kind in KINDS} - {kind.name for kind in (*SERVED, *ASKED)}
    files = {"KubeSchedulerConfiguration", "DynamicResourcesArgs", "DeviceMetadata"}
    assert others == files | {"Scale"}


@pytest.mark.parametrize("kind", KINDS, ids=titled)
def test_an_object_survives_the_way_to_its_hub_and_back(kind: Kind) -> None:
    value = full(kind.struct)
    value = decode_tree(to_tree(value) | {"apiVersion": kind.api_version}, kind.struct).value
    stored = to_hub(value)
    assert stored.api_version == kind.hub_version
    back = to_tree(from_hub(stored, kind.api_version))
    expected = to_tree(value)
    for ignored in ("spec", "status"):
        # Fields with a meaning of their own cannot all be `text`; the rows below have them.
        back.pop(ignored, None)
        expected.pop(ignored, None)
    assert back == expected


# --- versions of scheduling.k8s.io --------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "hub_mode"), [("Pod", {"single": {}}), ("PodGroup", {"all": {}}), (None, None)]
)
def test_pod_groups_of_v1alpha2_become_those_of_v1beta1_and_back(
    mode: str | None, hub_mode: dict[str, Any] | None
) -> None:
    spec = {
        "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "resourceClaims": [{"name": "c", "resourceClaimName": "my-claim"}],
        **({"disruptionMode": mode} if mode else {}),
        "preemptionPolicy": "Never",
    }
    old = decode_tree({"metadata": {"name": "g"}, "spec": spec}, v1alpha2.PodGroup).value
    hub = to_hub(old)
    assert to_tree(hub)["spec"] == {
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "resourceClaims": [{"name": "c", "resourceClaimName": "my-claim"}],
        **({"disruptionMode": hub_mode} if hub_mode else {}),
        "preemptionPolicy": "Never",
    }
    assert from_hub(hub, v1alpha2.API_VERSION) == old


def test_workload_templates_of_v1alpha2_become_those_of_v1beta1_and_back() -> None:
    template = v1alpha2.PodGroupTemplate(name="t", disruption_mode="PodGroup")
    old = v1alpha2.Workload(spec=v1alpha2.WorkloadSpec(pod_group_templates=(template,)))
    hub = to_hub(old)
    assert hub.spec.pod_group_templates == (
        scheduling.PodGroupTemplate(
            name="t", disruption_mode=scheduling.DisruptionMode(all=scheduling.EmptyMode())
        ),
    )
    assert from_hub(hub, v1alpha2.API_VERSION) == old


def test_a_disruption_mode_that_v1beta1_cannot_say_is_left_for_validation_to_refuse() -> None:
    old = v1alpha2.PodGroup(spec=v1alpha2.PodGroupSpec(disruption_mode="Never"))
    assert to_hub(old).spec.disruption_mode == scheduling.DisruptionMode()


def test_v1alpha3_differs_from_v1beta1_in_its_name_only() -> None:
    value = scheduling.PodGroup(api_version="scheduling.k8s.io/v1alpha3")
    hub = to_hub(value)
    assert hub == scheduling.PodGroup()
    assert from_hub(hub, "scheduling.k8s.io/v1alpha3") == value


# --- events -------------------------------------------------------------------------------


def test_events_of_both_groups_are_the_same_events() -> None:
    stored = to_hub(events.Event(note="text", regarding=core.ObjectReference(name="p")))
    assert stored == core.Event(message="text", involved_object=core.ObjectReference(name="p"))
    assert from_hub(stored, events.API_VERSION).note == "text"


# --- the scheduler's configuration --------------------------------------------------------

CONFIGURATION = b"""{
  "apiVersion": "kubescheduler.config.k8s.io/v1",
  "kind": "KubeSchedulerConfiguration",
  "profiles": [{
    "schedulerName": "default-scheduler",
    "plugins": {"score": {"enabled": [{"name": "DynamicResources", "weight": 5}]}},
    "pluginConfig": [{
      "name": "DynamicResources",
      "args": {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "DynamicResourcesArgs",
        "bindingTimeout": "60s"
      }
    }]
  }]
}"""


def test_arguments_for_claims_are_found_in_a_profile() -> None:
    config = decode_json(CONFIGURATION, KubeSchedulerConfiguration).value
    (profile,) = config.profiles
    assert dynamic_resources_args(profile) == DynamicResourcesArgs(binding_timeout="60s")


def test_arguments_with_a_bad_duration_are_refused() -> None:
    text = CONFIGURATION.replace(b"60s", b"60")
    (profile,) = decode_json(text, KubeSchedulerConfiguration).value.profiles
    with pytest.raises(DecodeError, match='time: missing unit in duration "60"'):
        dynamic_resources_args(profile)


def test_arguments_of_another_plugin_are_refused() -> None:
    text = CONFIGURATION.replace(b'"DynamicResourcesArgs"', b'"NodeAffinityArgs"')
    (profile,) = decode_json(text, KubeSchedulerConfiguration).value.profiles
    with pytest.raises(DecodeError, match="were not of type DynamicResourcesArgs"):
        dynamic_resources_args(profile)


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("0", 0, "0s"),
        ("60s", 60_000_000_000, "1m0s"),
        ("0.5s", 500_000_000, "500ms"),
        (".5s", 500_000_000, "500ms"),
        ("1.s", 1_000_000_000, "1s"),
        ("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s"),
        ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
        ("+1us", 1_000, "1µs"),
        ("1µs", 1_000, "1µs"),
        ("1μs", 1_000, "1µs"),
        ("1500us", 1_500_000, "1.5ms"),
        ("100ns", 100, "100ns"),
        ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_durations_are_read_and_printed_as_go_does(
    text: str, nanoseconds: int, printed: str
) -> None:
    assert duration_ns(text) == nanoseconds
    assert duration_text(nanoseconds) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("x", 'time: invalid duration "x"'),
        ("5", 'time: missing unit in duration "5"'),
        ("5y", 'time: unknown unit "y" in duration "5y"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("99999999999999999999h", 'time: invalid duration "99999999999999999999h"'),
    ],
)
def test_what_is_no_duration_is_refused_with_the_words_of_go(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        duration_ns(text)
    assert str(caught.value) == message


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_printed_duration_reads_as_itself(nanoseconds: int) -> None:
    assert duration_ns(duration_text(nanoseconds)) == nanoseconds
