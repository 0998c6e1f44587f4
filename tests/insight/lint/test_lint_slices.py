from __future__ import annotations

from typing import Any

import pytest
import yaml

from moorage.api.codec import encode_json
from moorage.hardware.catalogue import Catalogue
from moorage.insight.lint import RULES, Severity, lint
from moorage.insight.lint.rule import SLICES
from tests.insight.linting import context_of, findings, objects_of, rules, world_of

DRIVER = "gpu.example.com"
NUMA = "resource.kubernetes.io/numaNode"
BUS = "resource.kubernetes.io/pciBusID"
ROOT = "resource.kubernetes.io/pcieRoot"


def device(name: str = "gpu-0", **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def slice_(
    *devices: dict[str, Any],
    name: str = "slice-1",
    driver: str = DRIVER,
    pool: str = "node-1",
    generation: int = 1,
    count: int = 1,
    node: str = "node-1",
    **more: Any,
) -> str:
    spec: dict[str, Any] = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        **({"nodeName": node} if node else {}),
        **({} if "sharedCounters" in more else {"devices": list(devices)}),
        **more,
    }
    return _object("resource.k8s.io/v1", "ResourceSlice", name, spec)


def node(name: str = "node-1", labels: dict[str, str] | None = None, **status: Any) -> str:
    tree = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": status,
    }
    return yaml.safe_dump(tree)


def device_class(name: str, expression: str) -> str:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return _object("resource.k8s.io/v1", "DeviceClass", name, spec)


def _object(version: str, kind: str, name: str, spec: dict[str, Any]) -> str:
    tree = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    return yaml.safe_dump(tree)


def counters(amount: str = "8", name: str = "gpu", counter: str = "slots") -> dict[str, Any]:
    return {"name": name, "counters": {counter: {"value": amount}}}


def takes(amount: str = "4", set_: str = "gpu", counter: str = "slots") -> dict[str, Any]:
    consumption = {"counterSet": set_, "counters": {counter: {"value": amount}}}
    return device("part-0", consumesCounters=[consumption])


def partitioned(part: dict[str, Any], *sets: dict[str, Any], count: int = 2) -> tuple[str, ...]:
    return (
        slice_(name="counters", count=count, sharedCounters=list(sets)),
        slice_(part, name="devices", count=count),
    )


def attributes(**values: Any) -> dict[str, Any]:
    return {"attributes": {"resource.kubernetes.io/" + key: value for key, value in values.items()}}


def shared(**capacity: Any) -> dict[str, Any]:
    return device(allowMultipleAllocations=True, capacity=capacity)


GOOD_POLICY = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
ALLOCATABLE: dict[str, Any] = {
    "nodeAllocatableResources": {"memory": {"mapping": {"deviceMultiplier": "1Gi"}}}
}
IN_ZONE = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    ]
}

# rule: what it finds something in, and what is like it and good
EXAMPLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "refused-slice": (
        (slice_(*(device(f"gpu-{i}") for i in range(129))),),
        (slice_(*(device(f"gpu-{i}") for i in range(128))),),
    ),
    "odd-driver-name": ((slice_(device(), driver="GPU.example.com"),), (slice_(device()),)),
    "breaks-expressions": (
        (slice_(device(attributes={"v": {"version": f"{2**64}.0.0"}})),),
        (slice_(device(attributes={"v": {"version": "1.0.0"}})),),
    ),
    "capacity-never-fits": (
        (slice_(shared(memory={"value": "8Gi", "requestPolicy": {"default": "9Gi"}})),),
        (slice_(shared(memory={"value": "8Gi", "requestPolicy": GOOD_POLICY})),),
    ),
    "shared-without-limit": (
        (slice_(shared()),),
        (slice_(shared(memory={"value": "8Gi", "requestPolicy": GOOD_POLICY})),),
    ),
    "share-takes-all": (
        (slice_(shared(memory={"value": "8Gi"})),),
        (slice_(device(capacity={"memory": {"value": "8Gi"}})),),
    ),
    "unknown-node": ((slice_(device()), node("node-2")), (slice_(device()), node("node-1"))),
    "undeclared-feature": (
        (slice_(device(**ALLOCATABLE)), node()),
        (slice_(device(**ALLOCATABLE)), node(declaredFeatures=["DRANodeAllocatableResources"])),
    ),
    "unselected-driver": (
        (slice_(device()), device_class("nic", "device.driver == 'nic.example.com'")),
        (slice_(device()), device_class("gpu", f"device.driver == '{DRIVER}'")),
    ),
    "incomplete-pool": (
        (slice_(device(), count=2),),
        (slice_(device(), count=2), slice_(device("gpu-1"), name="slice-2", count=2)),
    ),
    "slice-counts-disagree": (
        (slice_(device(), count=2), slice_(device("gpu-1"), name="slice-2", count=3)),
        (slice_(device(), count=2), slice_(device("gpu-1"), name="slice-2", count=2)),
    ),
    "outdated-slice": (
        (slice_(device()), slice_(device(), name="slice-2", generation=2)),
        (slice_(device()), slice_(device(), name="slice-2", generation=2, pool="node-2")),
    ),
    "duplicate-device": (
        (slice_(device(), count=2), slice_(device(), name="slice-2", count=2)),
        (slice_(device()), slice_(device(), name="slice-2", pool="node-2", node="node-2")),
    ),
    "duplicate-counter-set": (
        (
            *partitioned(takes(), counters(), count=3),
            slice_(name="more", count=3, sharedCounters=[counters()]),
        ),
        partitioned(takes(), counters()),
    ),
    "unknown-counter": (
        partitioned(takes(set_="gup"), counters()),
        partitioned(takes(), counters()),
    ),
    "exceeds-counter": (
        partitioned(takes("9"), counters("8")),
        partitioned(takes("8"), counters("8")),
    ),
    "unused-counter": (
        partitioned(takes(), counters(), counters(name="spare")),
        partitioned(takes(), counters()),
    ),
    "both-names": (
        (
            slice_(
                device(attributes={"model": {"string": "a"}, f"{DRIVER}/model": {"string": "b"}})
            ),
        ),
        (slice_(device(attributes={"model": {"string": "a"}, "x.io/model": {"string": "b"}})),),
    ),
    "unknown-standard-attribute": (
        (slice_(device(**attributes(pcieroot={"string": "pci0000:00"}))),),
        (slice_(device(**attributes(pcieRoot={"string": "pci0000:00"}))),),
    ),
    "mixed-types": (
        (
            slice_(
                device(attributes={"a": {"int": 1}}), device("b", attributes={"a": {"bool": True}})
            ),
        ),
        (slice_(device(attributes={"a": {"int": 1}}), device("b", attributes={"a": {"int": 2}})),),
    ),
    "mixed-lists": (
        (
            slice_(
                device(attributes={"a": {"int": 1}}), device("b", attributes={"a": {"ints": [1]}})
            ),
        ),
        (
            slice_(
                device(attributes={"a": {"ints": [2]}}),
                device("b", attributes={"a": {"ints": [1]}}),
            ),
        ),
    ),
    "missing-standard-attribute": (
        (slice_(device(**attributes(numaNode={"int": 0})), device("gpu-1")),),
        (slice_(device(), device("gpu-1")),),
    ),
    "odd-standard-value": (
        (slice_(device(**attributes(numaNode={"int": -1}))),),
        (slice_(device(**attributes(numaNode={"ints": [0, 1]}))),),
    ),
    "same-hardware": (
        (
            slice_(device(**attributes(pciBusID={"string": "0000:3b:00.0"}))),
            slice_(
                device(**attributes(pciBusID={"string": "0000:3b:00.0"})),
                name="vfio",
                driver="vfio.example.com",
            ),
        ),
        (
            slice_(device(**attributes(pciBusID={"string": "0000:3b:00.0"}))),
            slice_(
                device(**attributes(pciBusID={"string": "0000:3b:00.0"})),
                name="vfio",
                driver="vfio.example.com",
                pool="node-2",
                node="node-2",
            ),
        ),
    ),
}


def test_every_rule_about_slices_has_its_examples() -> None:
    assert set(EXAMPLES) == {rule.id for rule in RULES if rule.about == SLICES}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_bad_example_is_found(rule: str) -> None:
    bad, _ = EXAMPLES[rule]
    assert rule in rules(*bad)


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_good_example_is_not_found(rule: str) -> None:
    _, good = EXAMPLES[rule]
    assert rules(*good) == []


# --- slices -------------------------------------------------------------------------------


def test_what_an_api_server_refuses_has_its_words_and_place() -> None:
    (finding,) = findings(slice_(device(taints=[{"key": "a", "effect": "NoSchedul"}])))
    assert (finding.rule, finding.severity) == ("refused-slice", Severity.ERROR)
    assert finding.field == "spec.devices[0].taints[0].effect"
    assert 'Unsupported value: "NoSchedul"' in finding.message


def test_what_is_wrong_with_many_devices_in_the_same_way_is_told_once() -> None:
    devices = (device(f"gpu-{i}", attributes={"a": {}}) for i in range(3))
    (finding,) = findings(slice_(*devices))
    assert finding.message.endswith("here and in 2 other places")


def test_64_devices_are_the_limit_with_taints() -> None:
    taint = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
    assert rules(slice_(*(device(f"gpu-{i}", **taint) for i in range(65)))) == ["refused-slice"]
    assert rules(slice_(*(device(f"gpu-{i}", **taint) for i in range(64)))) == []


def test_32_attributes_and_capacities_are_the_limit() -> None:
    many = {f"a{i}": {"int": i} for i in range(32)}
    assert rules(slice_(device(attributes=many))) == []
    more = device(attributes=many, capacity={"memory": {"value": "1Gi"}})
    assert rules(slice_(more)) == ["refused-slice"]


def test_fields_of_features_that_are_off_are_said_to_be_dropped() -> None:
    tainted = slice_(device(taints=[{"key": "a", "effect": "NoSchedule"}]))
    off = context_of("DRADeviceTaints=false,DRADeviceTaintRules=false")
    (finding,) = findings(tainted, context=off)
    assert (finding.rule, finding.severity) == ("dropped-field", Severity.WARNING)
    assert finding.message.startswith("DRADeviceTaints is off")
    assert rules(tainted) == []


def test_a_list_that_is_dropped_can_be_published_as_a_scalar() -> None:
    nodes = {"resource.kubernetes.io/numaNode": {"ints": [6, 4]}}
    found = findings(
        slice_(device(attributes=nodes)), context=context_of("DRAListTypeAttributes=false")
    )
    (dropped,) = [each for each in found if each.rule == "dropped-field"]
    assert dropped.remedy == (
        "switch on DRAListTypeAttributes in the cluster, "
        "or publish single values (numaNode: --numa-node scalar)"
    )


def test_what_is_dropped_is_not_looked_at() -> None:
    off = context_of(preset="kubernetes-1.37", gates="DRAPartitionableDevices=false")
    assert "unknown-counter" not in rules(*partitioned(takes(set_="gup")), context=off)


def test_a_slice_given_twice_is_told_and_counts_once() -> None:
    assert rules(slice_(device()), slice_(device())) == ["given-twice"]


def test_a_negative_capacity_aborts_scheduling() -> None:
    (finding,) = findings(slice_(device(capacity={"memory": {"value": "-1"}})))
    assert finding.rule == "capacity-never-fits"
    assert "scheduling aborts" in finding.message


def test_a_selector_of_no_node_is_told() -> None:
    text = slice_(device(), node="", nodeSelector=IN_ZONE)
    assert rules(text, node(labels={"zone": "a"})) == []
    (finding,) = findings(text, node(labels={"zone": "b"}))
    assert (finding.rule, finding.field) == ("unknown-node", "spec.nodeSelector")


def test_a_device_for_an_unknown_node_is_told() -> None:
    text = slice_(device(nodeName="node-2"), node="", perDeviceNodeSelection=True)
    (finding,) = findings(text, node("node-1"))
    assert (finding.rule, finding.field) == ("unknown-node", "spec.devices[0].nodeName")
    assert finding.remedy == 'did you mean "node-1"?'


# --- pools --------------------------------------------------------------------------------


def test_an_incomplete_pool_is_told_once() -> None:
    (finding,) = findings(
        slice_(device(), count=3), slice_(device("gpu-1"), name="slice-2", count=3)
    )
    assert finding.field == "spec.pool.resourceSliceCount"
    assert "2 slices of generation 1 among those given, but says it has 3" in finding.message


def test_too_many_slices_make_a_pool_incomplete() -> None:
    (finding,) = findings(slice_(device()), slice_(device("gpu-1"), name="slice-2"))
    assert "set resourceSliceCount to 2" in finding.remedy


def test_a_pool_may_be_complete_on_every_node() -> None:
    assert rules(slice_(device("a")), slice_(device("b"), name="slice-2", node="node-2")) == []


def test_one_pool_for_all_nodes_makes_devices_one() -> None:
    (finding,) = findings(slice_(device()), slice_(device(), name="slice-2", node="node-2"))
    assert finding.rule == "duplicate-device"
    assert finding.remedy == "publish a pool for each node, named after it"


def test_counters_may_be_in_a_slice_that_is_missing() -> None:
    assert rules(slice_(takes(), count=2)) == ["incomplete-pool"]


def test_the_nearest_counter_is_named() -> None:
    (finding, _) = findings(*partitioned(takes(counter="slot"), counters()))[::-1]
    assert finding.rule == "unknown-counter"
    assert finding.field == "spec.devices[0].consumesCounters[0].counters[slot]"
    assert finding.remedy == "did you mean slots?"


# --- attributes ---------------------------------------------------------------------------


def test_a_type_that_differs_between_drivers_is_told_once_where_it_is_rarer() -> None:
    (finding,) = findings(
        *(
            slice_(device(**attributes(numaNode={"int": 0})), name=f"s-{i}", pool=f"node-{i}")
            for i in range(2)
        ),
        slice_(device(**attributes(numaNode={"ints": [0]})), name="nic", driver="nic.example.com"),
    )
    assert (finding.rule, finding.name) == ("mixed-lists", "nic")


@pytest.mark.parametrize(
    "values",
    [
        {"pcieRoot": {"string": "0000:00"}},
        {"pciBusID": {"string": "3b:00.0"}},
        {"pciBusID": {"int": 3}},
        {"numaNode": {"string": "0"}},
    ],
)
def test_standard_attributes_have_one_form(values: dict[str, Any]) -> None:
    assert rules(slice_(device(**attributes(**values)))) == ["odd-standard-value"]


# --- hardware -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", Catalogue().names)
def test_what_real_drivers_publish_gives_no_warning(name: str) -> None:
    fleet = Catalogue().fleet(name)
    texts = (encode_json(each).decode() for each in (*fleet.nodes, *fleet.slices, *fleet.classes))
    context = context_of()
    objects = [found for text in texts for found in objects_of(text, context)]
    found = lint(objects, world_of(objects, context))
    assert [each for each in found if each.severity is not Severity.NOTE] == []
