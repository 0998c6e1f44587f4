"""Slices with the taints that DeviceTaintRules add to their devices.

The search knows the taints of devices only; this module puts those of rules beside them, in the
order of the rules' names. `put` and `remove` answer with a reach: the slices whose devices may
look different now. No other slice has to be applied again.

A rule without a selector means no device, an empty selector all of them. Selecting by class and
by CEL are extensions; an expression that has no answer for a device does not mean it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from mooring.api.devicetaints import DeviceName, means_by_name
from mooring.api.resource.v1 import (
    Device,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
)
from mooring.cel.device import DeviceCompiler, Features

DriverPool = tuple[str | None, str | None]  # None: whatever


class RuleTaint(NamedTuple):
    """A taint, and the rule that it comes from."""

    rule: str
    taint: DeviceTaint


class Reach(NamedTuple):
    """The slices that a change may mean: those of some drivers and pools."""

    means: frozenset[DriverPool]

    def covers(self, slice_: ResourceSlice) -> bool:
        """Return whether devices of the slice may look different after the change."""
        return bool(self.means) and not self.means.isdisjoint(_keys(slice_))


NOWHERE = Reach(frozenset())


class TaintRules:
    """The rules of a cluster. Slices are not kept: who has them applies the rules to them."""

    def __init__(self, compiler: DeviceCompiler | None = None) -> None:
        self._compiler = compiler or DeviceCompiler(Features(list_attributes=True))
        self._rules: dict[str, DeviceTaintRule] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._by_key: dict[DriverPool, dict[str, DeviceTaintRule]] = {}

    # --- changing -------------------------------------------------------------------------------

    def put(self, rule: DeviceTaintRule) -> Reach:
        """Take in a rule, instead of one of the same name."""
        name = rule.metadata.name
        before = self._rules.get(name)
        if before is not None and before.spec == rule.spec:
            self._enter(name, rule)
            return NOWHERE
        gone = self.remove(name)
        self._enter(name, rule)
        return Reach(gone.means | _reach(rule).means)

    def remove(self, name: str) -> Reach:
        """Forget a rule; there may be none of this name."""
        rule = self._rules.pop(name, None)
        if rule is None:
            return NOWHERE
        key = _rule_key(rule)
        self._by_key[key].pop(name, None)
        if not self._by_key[key]:
            del self._by_key[key]
        return _reach(rule)

    def put_class(self, device_class: DeviceClass) -> Reach:
        """Take in a class, instead of one of the same name; rules may select by it."""
        name = device_class.metadata.name
        before = self._classes.get(name)
        self._classes[name] = device_class
        if before is not None and before.spec.selectors == device_class.spec.selectors:
            return NOWHERE
        return self._reach_of_class(name)

    def remove_class(self, name: str) -> Reach:
        """Forget a class; rules that select by it mean no device any more."""
        known = self._classes.pop(name, None)
        return NOWHERE if known is None else self._reach_of_class(name)

    def _enter(self, name: str, rule: DeviceTaintRule) -> None:
        self._rules[name] = rule
        self._by_key.setdefault(_rule_key(rule), {})[name] = rule

    def _reach_of_class(self, name: str) -> Reach:
        means = (
            _reach(rule).means
            for rule in self._rules.values()
            if rule.spec.device_selector is not None
            and rule.spec.device_selector.device_class_name == name
        )
        return Reach(frozenset[DriverPool]().union(*means))

    # --- asking ---------------------------------------------------------------------------------

    def apply(self, slice_: ResourceSlice) -> ResourceSlice:
        """Return the slice with the taints of all rules; the same one if no rule means it."""
        if not self._rules:
            return slice_
        added = self.taints(slice_)
        if not any(added):
            return slice_
        devices = tuple(
            replace(device, taints=(*device.taints, *(each.taint for each in taints)))
            if taints
            else device
            for device, taints in zip(slice_.spec.devices or (), added, strict=True)
        )
        return replace(slice_, spec=replace(slice_.spec, devices=devices))

    def taints(self, slice_: ResourceSlice) -> list[list[RuleTaint]]:
        """Return for each device of the slice the taints that rules add."""
        devices = slice_.spec.devices or ()
        found: list[list[RuleTaint]] = [[] for _ in devices]
        for rule in self._meaning(slice_):
            added = RuleTaint(rule.metadata.name, rule.spec.taint)
            for place in self._means(rule, slice_.spec.driver, devices):
                found[place].append(added)
        return found

    def means(self, rule: DeviceTaintRule, name: DeviceName, device: Device | None) -> bool:
        """Return whether a rule means a device; None is one that no slice has any more.

        Of such a device nothing but the name is known, so neither class nor CEL selects it.
        """
        selector = rule.spec.device_selector
        if (
            selector is None
            or device is None
            or not (selector.device_class_name is not None or selector.selectors)
        ):
            return means_by_name(rule, name, device)
        if not all(w in (None, n) for w, n in zip(_rule_key(rule), name, strict=False)):
            return False
        return any(True for _ in self._means(rule, name.driver, (device,)))

    def _meaning(self, slice_: ResourceSlice) -> list[DeviceTaintRule]:
        """Return the rules whose driver and pool are those of the slice, by name."""
        if not self._rules:
            return []
        found = [rule for key in _keys(slice_) for rule in self._by_key.get(key, {}).values()]
        found = [rule for rule in found if rule.spec.device_selector is not None]
        return sorted(found, key=lambda rule: rule.metadata.name)

    def _means(
        self, rule: DeviceTaintRule, driver: str, devices: Iterable[Device]
    ) -> Iterator[int]:
        """Give the places of the devices that a rule for their driver and pool selects."""
        selector = rule.spec.device_selector
        assert selector is not None
        selectors = selector.selectors
        if selector.device_class_name is not None:
            device_class = self._classes.get(selector.device_class_name)
            if device_class is None:
                return
            selectors = (*device_class.spec.selectors, *selectors)
        for place, device in enumerate(devices):
            if selector.device is not None and selector.device != device.name:
                continue
            if all(self._selects(each, driver, device) for each in selectors):
                yield place

    def _selects(self, selector: DeviceSelector, driver: str, device: Device) -> bool:
        if selector.cel is None:
            return False  # A kind of selector that we do not know.
        compiled = self._compiler.compile(selector.cel.expression)
        if compiled.error is not None:
            return False
        answer = compiled.evaluate(
            driver=driver,
            attributes=device.attributes,
            capacity=device.capacity,
            allow_multiple_allocations=device.allow_multiple_allocations,
            name=device.name if self._compiler.extensions else None,
        )
        return answer.error is None and answer.value is True


def _rule_key(rule: DeviceTaintRule) -> DriverPool:
    selector = rule.spec.device_selector
    return (None, None) if selector is None else (selector.driver, selector.pool)


def _reach(rule: DeviceTaintRule) -> Reach:
    if rule.spec.device_selector is None:
        return NOWHERE
    return Reach(frozenset([_rule_key(rule)]))


def _keys(slice_: ResourceSlice) -> tuple[DriverPool, ...]:
    """Return the keys of all rules that may mean devices of the slice."""
    driver, pool = slice_.spec.driver, slice_.spec.pool.name
    return ((driver, pool), (driver, None), (None, pool), (None, None))
