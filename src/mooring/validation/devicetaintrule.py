"""How DeviceTaintRules are admitted; timeAdded says since when the effect holds."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.fieldpath import Path, root
from mooring.api.resource.v1 import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintRuleStatus,
    DeviceTaintSelector,
)
from mooring.api.timestamp import Timestamp
from mooring.validation.checks import driver_name, each, label, pool_name, subdomain
from mooring.validation.context import Context
from mooring.validation.devices import check_selector, check_taint
from mooring.validation.equality import same
from mooring.validation.errors import Errors, too_many
from mooring.validation.metadata import (
    check_conditions,
    check_metadata,
    check_metadata_update,
    next_generation,
)
from mooring.validation.resourceclaim import metadata_for_status
from mooring.validation.strategy import Strategy

SPEC = root("spec")
STATUS = root("status")
CONDITIONS_MAX = 8


class DeviceTaintRuleStrategy(Strategy[DeviceTaintRule]):
    """Admission of DeviceTaintRules."""

    allows_unconditional_update = False  # in v1; the older versions allow it

    def default(self, value: DeviceTaintRule, api_version: str, now: Timestamp) -> DeviceTaintRule:  # noqa: ARG002
        """Note when the taint came."""
        return _with_taint(value, default_taint(value.spec.taint, now))

    def prepare_create(self, new: DeviceTaintRule, context: Context) -> DeviceTaintRule:  # noqa: ARG002
        """Start counting generations; drop the status."""
        metadata = replace(new.metadata, generation=1)
        return replace(new, metadata=metadata, status=DeviceTaintRuleStatus())

    def check_create(self, new: DeviceTaintRule, context: Context) -> Errors:
        """Check everything."""
        found = check_metadata(new.metadata, namespaced=False)
        return found + _check_spec(new.spec, None, context)

    def prepare_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, context: Context
    ) -> DeviceTaintRule:
        """Keep the status; a new effect without a new time starts now."""
        new = replace(new, status=old.status)
        taint, before = new.spec.taint, old.spec.taint
        if taint.effect != before.effect and taint.time_added == before.time_added:
            new = _with_taint(new, replace(taint, time_added=context.now.truncated()))
        if same(new.spec, old.spec):
            return new
        generation = next_generation(old.metadata.generation)
        return replace(new, metadata=replace(new.metadata, generation=generation))

    def check_update(self, new: DeviceTaintRule, old: DeviceTaintRule, context: Context) -> Errors:
        """Check everything but an effect that stays as it was."""
        found = check_metadata_update(new.metadata, old.metadata)
        return found + _check_spec(new.spec, old.spec, context)

    def prepare_status(
        self,
        new: DeviceTaintRule,
        old: DeviceTaintRule,
        context: Context,  # noqa: ARG002
    ) -> DeviceTaintRule:
        """Keep spec and metadata."""
        metadata = metadata_for_status(new.metadata, old.metadata)
        return replace(new, spec=old.spec, metadata=metadata)

    def check_status(self, new: DeviceTaintRule, old: DeviceTaintRule, context: Context) -> Errors:  # noqa: ARG002
        """Check the conditions."""
        path = STATUS.child("conditions")
        conditions = new.status.conditions
        found = check_metadata_update(new.metadata, old.metadata)
        found += check_conditions(conditions, path)
        if len(conditions) > CONDITIONS_MAX:
            found.append(too_many(path, len(conditions), CONDITIONS_MAX))
        return found


def default_taint(taint: DeviceTaint, now: Timestamp) -> DeviceTaint:
    """Return the taint with the time it came."""
    return taint if taint.time_added is not None else replace(taint, time_added=now.truncated())


def _with_taint(rule: DeviceTaintRule, taint: DeviceTaint) -> DeviceTaintRule:
    return replace(rule, spec=replace(rule.spec, taint=taint))


def _check_spec(
    spec: DeviceTaintRuleSpec, old: DeviceTaintRuleSpec | None, context: Context
) -> Errors:
    found: Errors = []
    if spec.device_selector is not None:
        found += _check_selector(spec.device_selector, SPEC.child("deviceSelector"), context)
    return found + check_taint(
        spec.taint, old.taint if old is not None else None, SPEC.child("taint")
    )


def _check_selector(selector: DeviceTaintSelector, path: Path, context: Context) -> Errors:
    found: Errors = []
    if selector.driver is not None:
        found += driver_name(selector.driver, path.child("driver"))
    if selector.pool is not None:
        found += pool_name(selector.pool, path.child("pool"))
    if selector.device is not None:
        found += label(selector.device, path.child("device"))
    if selector.device_class_name is not None:
        found += subdomain(selector.device_class_name, path.child("deviceClassName"))
    return found + each(
        selector.selectors,
        lambda one, place: check_selector(one, place, context),
        path.child("selectors"),
    )
