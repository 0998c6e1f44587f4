"""KEP forms: their rewriting, their warnings, and the content left unchanged."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.gates import Gates
from moorage.api.kep_forms import RewrittenForm, is_slashed_driver_name, rewrite

ALL_ON = Gates.parse()
NO_DERIVED = Gates.parse("DRADerivedAttributes=false")
EXAMPLES = Path(__file__).parents[2] / "examples" / "seeds"

Tree = dict[str, Any]


def claim(devices: object, version: str = "v1") -> Tree:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "spec": {"devices": devices},
    }


def template(devices: object) -> Tree:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "spec": {"spec": {"devices": devices}},
    }


def resource_slice(device: object, version: str = "v1", **spec: object) -> Tree:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "spec": {"pool": {"name": "p"}, "devices": [device], **spec},
    }


def derived(name: str, **more: object) -> Tree:
    return {"derivedAttributes": [{"name": name, "expression": "1"}], **more}


def pod(status: object) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "status": {"extendedResourceClaimStatus": status},
    }


def quota(**spec: object) -> Tree:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "spec": spec}


def pod_group(version: str, **spec: object) -> Tree:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "spec": spec,
    }


def taint_rule(**selector: object) -> Tree:
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "spec": {"deviceSelector": selector},
    }


def pool_status(version: str, driver: str) -> Tree:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourcePoolStatusRequest",
        "spec": {"driver": driver},
    }


def texts(rewritten: RewrittenForm) -> list[str]:
    return [str(warning) for warning in rewritten.warnings]


# decision and case → (before, after, the beginning of each warning)
REWRITES: dict[str, tuple[Tree, Tree, list[str]]] = {
    "1 beside exactly": (
        claim({"requests": [{"name": "a", "exactly": {"count": 1}, **derived("d/x")}]}),
        claim({"requests": [{"name": "a", "exactly": {"count": 1, **derived("d/x")}}]}),
        ["spec.devices.requests[0].derivedAttributes: moved into exactly"],
    ),
    "1 beside exactly in a template": (
        template({"requests": [{"exactly": {}, **derived("d/x")}]}),
        template({"requests": [{"exactly": derived("d/x")}]}),
        ["spec.spec.devices.requests[0].derivedAttributes: moved into exactly"],
    ),
    "2 bare and hyphenated": (
        claim(
            {
                "requests": [
                    {"exactly": derived("shared-numa-node")},
                    {"firstAvailable": [derived("shared-numa-node"), derived("other")]},
                ],
                "constraints": [
                    {"matchAttribute": "shared-numa-node"},
                    {"distinctAttribute": "other"},
                    {"matchAttribute": "example.com/kept"},
                ],
            }
        ),
        claim(
            {
                "requests": [
                    {"exactly": derived("derived/shared_numa_node")},
                    {
                        "firstAvailable": [
                            derived("derived/shared_numa_node"),
                            derived("derived/other"),
                        ]
                    },
                ],
                "constraints": [
                    {"matchAttribute": "derived/shared_numa_node"},
                    {"distinctAttribute": "derived/other"},
                    {"matchAttribute": "example.com/kept"},
                ],
            }
        ),
        [
            (
                "spec.devices.requests[0].exactly.derivedAttributes[0].name: "
                '"shared-numa-node" is stored as "derived/shared_numa_node"'
            )
        ],
    ),
    "2 qualified but hyphenated": (
        claim({"requests": [{"exactly": derived("my-vendor.com/my-attr")}]}),
        claim({"requests": [{"exactly": derived("my-vendor.com/my_attr")}]}),
        ["spec.devices.requests[0].exactly.derivedAttributes[0].name:"],
    ),
    "2 in v1beta1, where requests are flat": (
        claim(
            {"requests": [derived("a-b")], "constraints": [{"matchAttribute": "a-b"}]}, "v1beta1"
        ),
        claim(
            {
                "requests": [derived("derived/a_b")],
                "constraints": [{"matchAttribute": "derived/a_b"}],
            },
            "v1beta1",
        ),
        ["spec.devices.requests[0].derivedAttributes[0].name:"],
    ),
    "4 typed lists": (
        resource_slice(
            {
                "attributes": {
                    "a": {"list": {"string": ["x"]}},
                    "b": {"list": {"int": [1]}},
                    "c": {"list": {"bool": [True]}},
                    "d": {"list": {"version": ["1.0.0"]}},
                    "e": {"string": "kept"},
                }
            }
        ),
        resource_slice(
            {
                "attributes": {
                    "a": {"strings": ["x"]},
                    "b": {"ints": [1]},
                    "c": {"bools": [True]},
                    "d": {"versions": ["1.0.0"]},
                    "e": {"string": "kept"},
                }
            }
        ),
        ["spec.devices[0].attributes[a].list: a typed list is stored as"],
    ),
    "4 and 9 in v1beta1, below basic": (
        resource_slice(
            {"basic": {"attributes": {"a": {"list": {"int": []}}}, "capacity": {"m": 5}}}, "v1beta1"
        ),
        resource_slice(
            {"basic": {"attributes": {"a": {"ints": []}}, "capacity": {"m": {"value": 5}}}},
            "v1beta1",
        ),
        [
            "spec.devices[0].basic.attributes[a].list:",
            "spec.devices[0].basic.capacity[m]: a plain quantity is stored as",
        ],
    ),
    "7 no devices": (
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "spec": {"requests": [{"name": "a"}], "constraints": [], "config": []},
        },
        claim({"requests": [{"name": "a"}], "constraints": [], "config": []}),
        ["spec: requests and constraints and config moved under devices"],
    ),
    "8 pcieRoot": (
        claim({"constraints": [{"matchAttribute": "k8s.io/pcieRoot"}]}),
        claim({"constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]}),
        ['spec.devices.constraints[0].matchAttribute: "k8s.io/pcieRoot" is stored as "resource.'],
    ),
    "9 plain capacity": (
        resource_slice({"capacity": {"cpu": "128", "memory": {"value": "1Gi"}, "n": 2.5}}),
        resource_slice(
            {"capacity": {"cpu": {"value": "128"}, "memory": {"value": "1Gi"}, "n": {"value": 2.5}}}
        ),
        ['spec.devices[0].capacity[cpu]: a plain quantity is stored as its "value"'],
    ),
    "10 node allocatable": (
        resource_slice(
            {
                "nodeAllocatableResourceMappings": {
                    "cpu": {"capacityKey": "d/cpu"},
                    "memory": {"allocationMultiplier": "8Gi"},
                    "hugepages-2Mi": {"capacityKey": "d/pages", "allocationMultiplier": 2},
                    "hugepages-1Gi": None,
                }
            }
        ),
        resource_slice(
            {
                "nodeAllocatableResources": {
                    "cpu": {"mapping": {"capacityKey": "d/cpu", "capacityMultiplier": "1"}},
                    "memory": {"mapping": {"deviceMultiplier": "8Gi"}},
                    "hugepages-2Mi": {
                        "mapping": {"capacityKey": "d/pages", "capacityMultiplier": 2}
                    },
                    "hugepages-1Gi": {"mapping": {"deviceMultiplier": "1"}},
                }
            }
        ),
        ["spec.devices[0].nodeAllocatableResourceMappings: stored as"],
    ),
    "14 pod status": (
        pod({"resourceClaimName": "c", "requestMapping": [{"extendedResourceName": "d/x"}]}),
        pod({"resourceClaimName": "c", "requestMappings": [{"resourceName": "d/x"}]}),
        [
            'status.extendedResourceClaimStatus.requestMapping: stored as "requestMappings"',
            "status.extendedResourceClaimStatus.requestMappings[0].extendedResourceName: stored as",
        ],
    ),
    "15 quota": (
        quota(
            hard={"request.deviceclass.resource.kubernetes.io/gpu": 1, "requests.cpu": 2},
            used={"requests.cpu": 1},
        ),
        quota(hard={"requests.deviceclass.resource.kubernetes.io/gpu": 1, "requests.cpu": 2}),
        [
            "spec.used: ignored",
            "spec.hard[request.deviceclass.resource.kubernetes.io/gpu]: stored as",
        ],
    ),
    "16 no pool": (
        resource_slice({"basic": None, "name": "gpu-0"}, "v1beta1", pool=None, nodeName="n1"),
        resource_slice(
            {"basic": None, "name": "gpu-0"},
            "v1beta1",
            pool={"name": "n1", "generation": 1, "resourceSliceCount": 1},
            nodeName="n1",
        ),
        ['spec.pool: stored as name "n1", generation 1 and resourceSliceCount 1'],
    ),
}

# decision and case → (the object, which is kept, and the beginning of each warning)
KEPT: dict[str, tuple[Tree, list[str]]] = {
    "3 hyphenated attribute": (
        resource_slice({"attributes": {"my-vendor.com/ok": {}, "d.com/supported-models": {}}}),
        [
            (
                "spec.devices[0].attributes[d.com/supported-models]: a hyphen in the name is an "
                "extension of Moorage"
            )
        ],
    ),
    "5 include": (
        claim(
            {"requests": [{"exactly": {"selectors": [{"cel": {"expression": "a.include(1)"}}]}}]}
        ),
        [
            (
                "spec.devices.requests[0].exactly.selectors[0].cel.expression: "
                "include() is an alias of includes()"
            )
        ],
    ),
    "6 device.name": (
        claim(
            {
                "requests": [
                    {
                        "exactly": {
                            "derivedAttributes": [
                                {"name": "d/i", "expression": "device.name.replace('gpu', '')"}
                            ]
                        }
                    }
                ]
            }
        ),
        [
            (
                "spec.devices.requests[0].exactly.derivedAttributes[0].expression: "
                "device.name is an extension of Moorage"
            )
        ],
    ),
    "6 device.name in a class": (
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "spec": {"selectors": [{"cel": {"expression": 'device.name == "gpu-0"'}}]},
        },
        ["spec.selectors[0].cel.expression: device.name is an extension of Moorage"],
    ),
    "11 class and CEL in a taint rule": (
        taint_rule(deviceClassName="gpu", selectors=[{"cel": {"expression": "true"}}]),
        [
            "spec.deviceSelector.deviceClassName: selecting devices by a class is an extension",
            "spec.deviceSelector.selectors: selecting devices by CEL is an extension",
        ],
    ),
    "12 pool status": (
        pool_status("v1beta2", "example.com/gpu"),
        [
            (
                "apiVersion: Kubernetes 1.37 serves ResourcePoolStatusRequest as "
                "resource.k8s.io/v1alpha3"
            ),
            'spec.driver: no pool has a driver named "example.com/gpu"',
        ],
    ),
    "13 pod group": (
        pod_group("v1alpha2", disruptionMode="PodGroup"),
        ["apiVersion: Kubernetes 1.37 serves PodGroup as scheduling.k8s.io/v1beta1 and v1alpha3"],
    ),
    "17 rejected fields": (
        claim(
            {
                "constraints": [
                    {"cel": {}},
                    {"matchSemantics": {}},
                    {"distinctSemantics": {}, "semantics": {}},
                ]
            }
        ),
        [
            "spec.devices.constraints[0].cel: unknown field: KEP-5254 proposed it and was rejected",
            "spec.devices.constraints[1].matchSemantics: unknown field: KEP-5491 rejected it",
            "spec.devices.constraints[2].distinctSemantics: unknown field: KEP-5491 rejected it",
            "spec.devices.constraints[2].semantics: unknown field: KEP-5491 rejected it",
        ],
    ),
}

# Shipped forms, forms of other kinds, and wrong shapes: nothing to change, nothing to say.
UNTOUCHED: dict[str, Tree] = {
    "an empty object": {},
    "a kind that is a list": {"apiVersion": "v1", "kind": ["Pod"]},
    "another kind": {"apiVersion": "apps/v1", "kind": "ResourceClaim", "spec": {"requests": []}},
    "a shipped derived attribute": claim(
        {
            "requests": [{"exactly": derived("derived/numa")}],
            "constraints": [{"matchAttribute": "derived/numa"}],
        }
    ),
    "derived attributes in v1beta1": claim({"requests": [derived("d/x")]}, "v1beta1"),
    "derived attributes on both sides": claim(
        {"requests": [{"exactly": derived("d/x"), **derived("d/y")}]}
    ),
    "derived attributes beside firstAvailable": claim(
        {"requests": [{"firstAvailable": [{}], **derived("a-b")}]}
    ),
    "a derived name that no rule fits": claim({"requests": [{"exactly": derived("0 or 1")}]}),
    "a bare attribute that nobody derives": claim({"constraints": [{"matchAttribute": "a-b"}]}),
    "a claim's own k8s.io/pcieRoot": claim(
        {
            "requests": [{"exactly": derived("k8s.io/pcieRoot")}],
            "constraints": [{"matchAttribute": "k8s.io/pcieRoot"}],
        }
    ),
    "requests beside devices": {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": {"devices": {}, "requests": []},
    },
    "device.name inside a string": claim(
        {
            "requests": [
                {"exactly": {"selectors": [{"cel": {"expression": "'device.name' != \"x\""}}]}}
            ]
        }
    ),
    "a field of the device's attributes": claim(
        {"requests": [{"exactly": {"selectors": [{"cel": {"expression": "my.device.names"}}]}}]}
    ),
    "a list beside its shipped form": resource_slice(
        {"attributes": {"a": {"list": {"int": [1]}, "ints": [2]}}}
    ),
    "a list of unknown type": resource_slice({"attributes": {"a": {"list": {"float": [1]}}}}),
    "a capacity that is no quantity": resource_slice({"capacity": {"a": None, "b": True, "c": []}}),
    "both node allocatable fields": resource_slice(
        {"nodeAllocatableResources": {}, "nodeAllocatableResourceMappings": {"cpu": {}}}
    ),
    "mappings of a wrong shape": resource_slice({"nodeAllocatableResourceMappings": {"cpu": 1}}),
    "a slice without pool for all nodes": resource_slice({}, pool=None, allNodes=True),
    "a shipped pod status": pod({"requestMappings": [{"resourceName": "d/x"}]}),
    "both spellings of a limit": quota(
        hard={
            "request.deviceclass.resource.kubernetes.io/gpu": 1,
            "requests.deviceclass.resource.kubernetes.io/gpu": 1,
        }
    ),
    "another quota called request": quota(hard={"request.example.com/gpu": 1}),
    "a pod group of v1beta1": pod_group("v1beta1", disruptionMode="PodGroup"),
    "a plain taint rule": taint_rule(driver="d"),
    "a pool status request of v1alpha3": pool_status("v1alpha3", "gpu.example.com"),
}


@pytest.mark.parametrize("case", REWRITES)
def test_seed_form_is_stored_in_its_shipped_form(case: str) -> None:
    before, after, warnings = REWRITES[case]
    rewritten = rewrite(before, gates=ALL_ON)
    assert rewritten.tree == after
    assert not rewritten.errors
    assert len(rewritten.warnings) == len(warnings)
    for text, beginning in zip(texts(rewritten), warnings, strict=True):
        assert text.startswith(beginning)


@pytest.mark.parametrize("case", KEPT)
def test_extension_is_kept_and_named(case: str) -> None:
    before, warnings = KEPT[case]
    rewritten = rewrite(before, gates=ALL_ON)
    assert rewritten.tree is before
    assert len(rewritten.warnings) == len(warnings)
    for text, beginning in zip(texts(rewritten), warnings, strict=True):
        assert text.startswith(beginning)


@pytest.mark.parametrize("case", UNTOUCHED)
def test_anything_else_is_given_back_itself(case: str) -> None:
    tree = UNTOUCHED[case]
    rewritten = rewrite(tree, gates=ALL_ON)
    assert rewritten.tree is tree
    assert rewritten == (tree, (), ())


@pytest.mark.parametrize("case", REWRITES)
def test_rewriting_twice_changes_nothing_more(case: str) -> None:
    once = rewrite(REWRITES[case][0], gates=ALL_ON).tree
    assert rewrite(once, gates=ALL_ON).tree is once


@pytest.mark.parametrize("case", REWRITES)
def test_the_given_tree_is_never_changed(case: str) -> None:
    before = copy.deepcopy(REWRITES[case][0])
    given_tree = copy.deepcopy(before)
    rewrite(given_tree, gates=ALL_ON)
    assert given_tree == before


def test_derived_names_stay_as_written_while_the_gate_is_off() -> None:
    before = REWRITES["2 bare and hyphenated"][0]
    assert rewrite(before, gates=NO_DERIVED) == (before, (), ())


@pytest.mark.parametrize("other", ["a_b", "derived/a_b"])
def test_two_derived_names_that_would_become_one_are_an_error(other: str) -> None:
    before = claim(
        {
            "requests": [{"exactly": derived("a-b")}, {"exactly": derived(other)}],
            "constraints": [{"matchAttribute": "a-b"}],
        }
    )
    rewritten = rewrite(before, gates=ALL_ON)
    assert rewritten.tree is before
    assert [str(error) for error in rewritten.errors] == [
        (
            "spec.devices.requests[1].exactly.derivedAttributes[0].name: "
            f'"{other}" and "a-b" would both be stored as "derived/a_b": rename one of them'
        )
    ]


def test_a_form_is_warned_of_once_per_object() -> None:
    many = resource_slice({})
    many["spec"]["devices"] = [{"capacity": {"cpu": "1", "memory": "2"}} for _ in range(50)]
    assert len(rewrite(many, gates=ALL_ON).warnings) == 1


@pytest.mark.parametrize(
    ("name", "is_slashed"),
    [("example.com/gpu", True), ("gpu.example.com", False), ("a/b/c", False), ("a/", False)],
)
def test_slashed_driver_names_are_a_domain_and_a_name(name: str, is_slashed: bool) -> None:
    assert is_slashed_driver_name(name) == is_slashed


# Any JSON, with the words that rewriters look for often enough to lead deep into them.
WORDS = sorted(
    {
        *("spec", "devices", "requests", "constraints", "config", "exactly", "firstAvailable"),
        *("derivedAttributes", "name", "expression", "matchAttribute", "distinctAttribute", "cel"),
        *("selectors", "attributes", "capacity", "list", "string", "int", "basic", "pool"),
        *("nodeName", "nodeAllocatableResourceMappings", "capacityKey", "allocationMultiplier"),
        *("status", "extendedResourceClaimStatus", "requestMapping", "requestMappings"),
        *("extendedResourceName", "hard", "used", "deviceSelector"),
        *("deviceClassName", "driver", "a-b", "k8s.io/pcieRoot"),
        *("semantics", "containers", "resources", "limits", "allocatable"),
    }
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=25,
)
KINDS = st.sampled_from(
    [
        ("v1", "Pod"),
        ("v1", "Node"),
        ("v1", "ResourceQuota"),
        ("scheduling.k8s.io/v1alpha2", "PodGroup"),
        *(
            (f"resource.k8s.io/{version}", kind)
            for version in ("v1", "v1beta1", "v1beta2")
            for kind in (
                "DeviceClass",
                "DeviceTaintRule",
                "ResourceClaim",
                "ResourceClaimTemplate",
                "ResourcePoolStatusRequest",
                "ResourceSlice",
            )
        ),
    ]
)


@settings(max_examples=300)
@given(KINDS, JSON, JSON)
def test_any_json_is_rewritten_without_fault_and_only_once(
    kind: tuple[str, str], spec: object, status: object
) -> None:
    tree: Tree = {"apiVersion": kind[0], "kind": kind[1], "spec": spec, "status": status}
    before = copy.deepcopy(tree)
    once = rewrite(tree, gates=ALL_ON)
    assert repr(tree) == repr(before)
    assert rewrite(once.tree, gates=ALL_ON).tree is once.tree
    if not once.warnings:
        assert once.tree is tree


def places(tree: object) -> Iterator[tuple[str | int, ...]]:
    """Give the way to every value below a tree."""
    items: Iterable[tuple[str | int, object]] = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    for key, value in items:
        yield (key,)
        yield from ((key, *place) for place in places(value))


@settings(max_examples=300)
@given(st.data(), st.sampled_from(sorted(REWRITES)), JSON)
def test_a_broken_seed_form_is_rewritten_without_fault_and_only_once(
    data: st.DataObject, case: str, value: object
) -> None:
    tree = copy.deepcopy(REWRITES[case][0])
    holder: Any = tree["spec" if "spec" in tree else "status"]
    *way, last = data.draw(st.sampled_from(list(places(holder))))
    for step in way:
        holder = holder[step]
    holder[last] = value
    once = rewrite(tree, gates=ALL_ON)
    assert rewrite(once.tree, gates=ALL_ON).tree is once.tree


FILES = {path.name: path for path in EXAMPLES.rglob("0*")}
OBJECTS = sorted(name for name in FILES if not name.endswith(".txt"))


def documents(name: str) -> list[Tree]:
    text = FILES[name].read_text(encoding="utf-8")
    return [json.loads(text)] if name.endswith(".json") else list(yaml.safe_load_all(text))


@pytest.mark.parametrize("name", OBJECTS)
def test_applying_an_example_again_stores_the_same(name: str) -> None:
    for document in documents(name):
        once = rewrite(document, gates=ALL_ON).tree
        assert rewrite(once, gates=ALL_ON).tree is once
