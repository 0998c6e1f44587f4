"""Device taints: which of them block a request, and those that DeviceTaintRules add to slices.

The search only sees taints of devices; TaintRules adds those of rules behind them, ordered by rule
name. `put` and `remove` return the affected slices: those whose devices may look different now. No
other slice has to be applied again.

A rule without a selector selects no device, an empty selector all of them. Selecting by class and
by CEL are extensions; an expression that fails for a device does not select it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.core.placement import NO_EXECUTE, NO_SCHEDULE
from moorage.api.resource.v1 import (
    Device,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceSlice,
)
from moorage.api.tolerations import DeviceName, means_by_name, tolerates
from moorage.cel.device import CelFeatures, DeviceCompiler

BLOCKING = (NO_SCHEDULE, NO_EXECUTE)


def blocking_taint(device: Device, tolerations: Iterable[DeviceToleration]) -> DeviceTaint | None:
    """Return the first taint that blocks a request with these tolerations."""
    for taint in device.taints:
        if taint.effect in BLOCKING and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


DriverPool = tuple[str | None, str | None]  # None: any


class RuleTaint(NamedTuple):
    """A taint, and the rule that adds it."""

    rule: str
    taint: DeviceTaint


class AffectedSlices(NamedTuple):
    """The slices that a change may affect: those of some drivers and pools."""

    pools: frozenset[DriverPool]

    def covers(self, slice_: ResourceSlice) -> bool:
        """Return whether devices of the slice may look different after the change."""
        return bool(self.pools) and not self.pools.isdisjoint(_keys(slice_))


NO_SLICES = AffectedSlices(frozenset())


class TaintRules:
    """The DeviceTaintRules of a cluster; the caller keeps the slices and applies the rules."""

    def __init__(self, compiler: DeviceCompiler | None = None) -> None:
        self._compiler = compiler or DeviceCompiler(CelFeatures(list_attributes=True))
        self.rules: dict[str, DeviceTaintRule] = {}
        self.classes: dict[str, DeviceClass] = {}
        self._by_key: dict[DriverPool, dict[str, DeviceTaintRule]] = {}

    # --- changing -------------------------------------------------------------------------------

    def put(self, rule: DeviceTaintRule) -> AffectedSlices:
        """Add a rule, or replace the one of the same name."""
        name = rule.metadata.name
        before = self.rules.get(name)
        if before is not None and before.spec == rule.spec:
            self._enter(name, rule)
            return NO_SLICES
        gone = self.remove(name)
        self._enter(name, rule)
        return AffectedSlices(gone.pools | _affected(rule).pools)

    def remove(self, name: str) -> AffectedSlices:
        """Remove a rule; there may be none of this name."""
        rule = self.rules.pop(name, None)
        if rule is None:
            return NO_SLICES
        key = _rule_key(rule)
        self._by_key[key].pop(name, None)
        if not self._by_key[key]:
            del self._by_key[key]
        return _affected(rule)

    def put_class(self, device_class: DeviceClass) -> AffectedSlices:
        """Add or replace a class; rules may select by it."""
        name = device_class.metadata.name
        before = self.classes.get(name)
        self.classes[name] = device_class
        if before is not None and before.spec.selectors == device_class.spec.selectors:
            return NO_SLICES
        return self._reach_of_class(name)

    def remove_class(self, name: str) -> AffectedSlices:
        """Remove a class; rules that select by it select no device any more."""
        removed = self.classes.pop(name, None)
        return NO_SLICES if removed is None else self._reach_of_class(name)

    def _enter(self, name: str, rule: DeviceTaintRule) -> None:
        self.rules[name] = rule
        self._by_key.setdefault(_rule_key(rule), {})[name] = rule

    def _reach_of_class(self, name: str) -> AffectedSlices:
        pools = (
            _affected(rule).pools
            for rule in self.rules.values()
            if rule.spec.device_selector is not None
            and rule.spec.device_selector.device_class_name == name
        )
        return AffectedSlices(frozenset[DriverPool]().union(*pools))

    # --- reading --------------------------------------------------------------------------------

    def apply(self, slice_: ResourceSlice) -> ResourceSlice:
        """Return the slice with the taints of all rules; the same object if none selects it."""
        if not self.rules:
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
        for rule in self._rules_for(slice_):
            added = RuleTaint(rule.metadata.name, rule.spec.taint)
            for place in self._selected(rule, slice_.spec.driver, devices):
                found[place].append(added)
        return found

    def selects(self, rule: DeviceTaintRule, name: DeviceName, device: Device | None) -> bool:
        """Return whether a rule selects a device; None is one that no slice has any more.

        Only the name of such a device is known, so neither class nor CEL selects it.
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
        return any(True for _ in self._selected(rule, name.driver, (device,)))

    def _rules_for(self, slice_: ResourceSlice) -> list[DeviceTaintRule]:
        """Return the rules for the driver and pool of the slice, by name."""
        if not self.rules:
            return []
        found = [rule for key in _keys(slice_) for rule in self._by_key.get(key, {}).values()]
        found = [rule for rule in found if rule.spec.device_selector is not None]
        return sorted(found, key=lambda rule: rule.metadata.name)

    def _selected(
        self, rule: DeviceTaintRule, driver: str, devices: Iterable[Device]
    ) -> Iterator[int]:
        """Yield the indices of the devices that a rule for their driver and pool selects."""
        selector = rule.spec.device_selector
        assert selector is not None
        selectors = selector.selectors
        if selector.device_class_name is not None:
            device_class = self.classes.get(selector.device_class_name)
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
            return False  # An unknown kind of selector.
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


def _affected(rule: DeviceTaintRule) -> AffectedSlices:
    if rule.spec.device_selector is None:
        return NO_SLICES
    return AffectedSlices(frozenset([_rule_key(rule)]))


def _keys(slice_: ResourceSlice) -> tuple[DriverPool, ...]:
    """Return the keys of all rules that may select devices of the slice."""
    driver, pool = slice_.spec.driver, slice_.spec.pool.name
    return ((driver, pool), (driver, None), (None, pool), (None, None))
