"""Slices with the taints of DeviceTaintRules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.allocator.taints import TaintRules
from moorage.api.codec import decode_tree
from moorage.api.resource.v1 import DeviceClass, DeviceTaint, DeviceTaintRule, ResourceSlice
from moorage.claims import DeviceName

TAINT = {"key": "broken", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}


def slice_of(*devices: str, driver: str = "gpu.example.com", pool: str = "n1") -> ResourceSlice:
    return decode_tree(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{driver}-{pool}"},
            "spec": {
                "driver": driver,
                "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
                "nodeName": pool,
                "devices": [
                    {"name": name, "attributes": {"place": {"int": place}}}
                    for place, name in enumerate(devices)
                ],
            },
        },
        ResourceSlice,
    ).value


def rule_of(selector: Any, *, name: str = "rule", taint: Any = TAINT) -> DeviceTaintRule:
    spec = {"taint": taint} | ({} if selector is None else {"deviceSelector": selector})
    return decode_tree({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule).value


def class_of(expression: str) -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return decode_tree({"metadata": {"name": "gpu"}, "spec": spec}, DeviceClass).value


def tainted(slice_: ResourceSlice) -> list[str]:
    return [device.name for device in slice_.spec.devices or () if device.taints]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, ["a", "b"]),
        (None, []),
        ({"driver": "gpu.example.com"}, ["a", "b"]),
        ({"driver": "nic.example.com"}, []),
        ({"driver": "gpu.example.com", "pool": "n1", "device": "b"}, ["b"]),
        ({"pool": "n2"}, []),
        ({"device": "a"}, ["a"]),
        ({"selectors": [{"cel": {"expression": 'device.name == "b"'}}]}, ["b"]),
        ({"selectors": [{"cel": {"expression": "no expression"}}]}, []),
        (
            {"selectors": [{"cel": {"expression": 'device.attributes["x.y"].z == 1'}}]},
            [],
        ),
        ({"deviceClassName": "gpu"}, ["b"]),
        ({"deviceClassName": "unknown"}, []),
    ],
)
def test_selector_means_devices(selector: Any, expected: list[str]) -> None:
    rules = TaintRules()
    rules.put_class(class_of('device.attributes["gpu.example.com"].place == 1'))
    rules.put(rule_of(selector))
    assert tainted(rules.apply(slice_of("a", "b"))) == expected


def test_taint_is_appended_as_the_rule_has_it() -> None:
    rules = TaintRules()
    rules.put(rule_of({}, name="z", taint={"key": "late", "effect": "None"}))
    rules.put(rule_of({}, name="b"))
    plain = slice_of("a")
    (device,) = rules.apply(plain).spec.devices or ()
    assert [taint.key for taint in device.taints] == ["broken", "late"]
    assert device.taints[0].time_added is not None
    assert [each.rule for each in rules.taints(plain)[0]] == ["b", "z"]


def test_slice_that_no_rule_means_stays_the_same_object() -> None:
    rules = TaintRules()
    plain = slice_of("a")
    assert rules.apply(plain) is plain
    rules.put(rule_of({"pool": "elsewhere"}))
    assert rules.apply(plain) is plain


def test_change_reaches_slices_of_the_old_and_the_new_rule_only() -> None:
    rules = TaintRules()
    first, second, third = (slice_of("a", pool=pool) for pool in ("n1", "n2", "n3"))
    assert rules.put(rule_of({"pool": "n1"})).covers(first)
    moved = rules.put(rule_of({"pool": "n2"}))
    assert [moved.covers(each) for each in (first, second, third)] == [True, True, False]
    assert not rules.put(rule_of({"pool": "n2"})).covers(second)
    assert rules.remove("rule").covers(second)
    assert not rules.remove("rule").covers(second)


def test_class_reaches_slices_of_rules_that_select_by_it() -> None:
    rules = TaintRules()
    mine, other = slice_of("a"), slice_of("a", driver="nic.example.com")
    rules.put(rule_of({"driver": "gpu.example.com", "deviceClassName": "gpu"}))
    change = rules.put_class(class_of("true"))
    assert change.covers(mine)
    assert not change.covers(other)
    assert tainted(rules.apply(mine)) == ["a"]
    assert not rules.put_class(class_of("true")).covers(mine)
    assert rules.remove_class("gpu").covers(mine)
    assert tainted(rules.apply(mine)) == []


NAMES = st.sampled_from(["r1", "r2", "r3"])
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "driver": st.sampled_from(["gpu.example.com", "nic.example.com"]),
        "pool": st.sampled_from(["n1", "n2"]),
        "device": st.sampled_from(["a", "b"]),
    },
)
CHANGES = st.lists(st.tuples(NAMES, st.one_of(st.none(), PARTS), st.booleans()), max_size=8)


@given(CHANGES)
def test_applying_again_where_a_change_reaches_equals_applying_everywhere(
    changes: list[tuple[str, Any, bool]],
) -> None:
    rules = TaintRules()
    slices = [
        slice_of("a", "b", driver=driver, pool=pool)
        for driver in ("gpu.example.com", "nic.example.com")
        for pool in ("n1", "n2")
    ]
    kept = list(slices)
    final: dict[str, Any] = {}
    for name, selector, is_removed in changes:
        if is_removed:
            reach = rules.remove(name)
            final.pop(name, None)
        else:
            rule = rule_of(selector, name=name, taint={"key": name, "effect": "NoSchedule"})
            reach = rules.put(rule)
            final[name] = selector
        kept = [
            rules.apply(plain) if reach.covers(plain) else before
            for plain, before in zip(slices, kept, strict=True)
        ]
    for plain, after in zip(slices, kept, strict=True):
        for device in after.spec.devices or ():
            place = {
                "driver": plain.spec.driver,
                "pool": plain.spec.pool.name,
                "device": device.name,
            }
            expected = tuple(
                DeviceTaint(key=name, effect="NoSchedule")
                for name, selector in sorted(final.items())
                if selector is not None and selector.items() <= place.items()
            )
            assert device.taints == expected


@pytest.mark.parametrize(
    "selector",
    [
        {},
        None,
        {"driver": "gpu.example.com", "device": "b"},
        {"pool": "n2"},
        {"deviceClassName": "gpu"},
        {"deviceClassName": "gpu", "pool": "n2"},
        {"deviceClassName": "missing"},
        {"driver": "gpu.example.com", "selectors": [{"cel": {"expression": "false"}}]},
    ],
)
def test_a_rule_means_the_devices_that_it_taints(selector: Any) -> None:
    rules = TaintRules()
    rules.put_class(class_of('device.attributes["gpu.example.com"].place == 1'))
    rule = rule_of(selector)
    rules.put(rule)
    slice_ = slice_of("a", "b")
    meant = [
        device.name
        for device in slice_.spec.devices or ()
        if rules.selects(rule, DeviceName("gpu.example.com", "n1", device.name), device)
    ]
    assert meant == tainted(rules.apply(slice_))


def test_a_device_that_no_slice_has_is_meant_by_its_name_only() -> None:
    rules = TaintRules()
    rules.put_class(class_of("true"))
    name = DeviceName("gpu.example.com", "n1", "gone")
    assert rules.selects(rule_of({"driver": "gpu.example.com"}), name, None)
    assert not rules.selects(rule_of({"deviceClassName": "gpu"}), name, None)
