"""Strategies of DeviceClasses and DeviceTaintRules."""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api import names
from moorage.api.field_path import Path, root
from moorage.api.gates import Gate
from moorage.api.names import BYTES
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceClassSpec,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from moorage.validation.device_fields import (
    SELECTORS_MAX,
    default_taint,
    validate_opaque,
    validate_selector,
    validate_taint,
)
from moorage.validation.equality import both, semantic_equal
from moorage.validation.errors import ErrorList, invalid, too_many
from moorage.validation.field_rules import (
    declared_list,
    driver_name,
    each,
    each_invalid,
    label,
    pool_name,
    subdomain,
)
from moorage.validation.metadata import (
    validate_conditions,
    validate_metadata,
    validate_metadata_update,
    validate_path_segments,
)
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
CONFIG_MAX = 32


class DeviceClassStrategy(ObjectStrategy[DeviceClass]):
    """The strategy of DeviceClasses; unchanged fields of an update are not validated again."""

    namespaced = False
    tracks_generation = True

    def drop_disabled_fields(
        self, new: DeviceClass, old: DeviceClass | None, context: Context
    ) -> DeviceClass:
        """Drop the extended resource name while its feature is off."""
        is_in_use = old is not None and old.spec.extended_resource_name is not None
        if context.enabled(Gate.DRA_EXTENDED_RESOURCE) or is_in_use:
            return new
        return replace(new, spec=replace(new.spec, extended_resource_name=None))

    def validate(self, new: DeviceClass, context: Context) -> ErrorList:
        """Validate everything."""
        found = _validate_class_metadata(new) + _validate_class_spec(new.spec, None, context)
        return found or validate_path_segments(new.metadata, namespaced=False)

    def validate_update(self, new: DeviceClass, old: DeviceClass, context: Context) -> ErrorList:
        """Validate everything but unchanged expressions and configuration."""
        found = _validate_class_metadata(new) + validate_metadata_update(new.metadata, old.metadata)
        return found + _validate_class_spec(new.spec, old.spec, context)


def _validate_class_metadata(new: DeviceClass) -> ErrorList:
    return validate_metadata(
        new.metadata,
        namespaced=False,
        validate_name=lambda name: names.dns1123_subdomain(name, unit=BYTES),
        validate_prefix=False,
        declared_name=True,
    )


def _validate_class_spec(
    spec: DeviceClassSpec, old: DeviceClassSpec | None, context: Context
) -> ErrorList:
    selectors_stored = old is not None and semantic_equal(spec.selectors, old.selectors)
    found = declared_list(
        spec.selectors,
        SELECTORS_MAX,
        lambda selector, path: validate_selector(selector, path, context, stored=selectors_stored),
        SPEC.child("selectors"),
    )
    config_stored = old is not None and semantic_equal(spec.config, old.config)
    found += declared_list(
        spec.config,
        CONFIG_MAX,
        lambda config, path: validate_opaque(config.opaque, path, stored=config_stored),
        SPEC.child("config"),
    )
    if spec.extended_resource_name is not None:
        place = SPEC.child("extendedResourceName")
        found += _validate_extended_resource_name(spec.extended_resource_name, place)
    return found


def _validate_extended_resource_name(name: str, path: Path) -> ErrorList:
    by_hand: ErrorList = []
    if not names.is_extended_resource(name):
        by_hand.append(invalid(path, name, "must be a valid extended resource name"))
    found: ErrorList = []
    if "/" not in name:
        detail = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        found.append(invalid(path, name, detail, declared=True))
    elif "kubernetes.io/" in name:
        detail = 'must not have "kubernetes.io/" domain'
        found.append(invalid(path, name, detail, declared=True))
    if name.startswith("requests."):
        found.append(invalid(path, name, 'must not have "requests." prefix', declared=True))
    # In a quota the name has this prefix, and must still be a label key.
    messages = names.label_name(f"requests.{name}")
    return both(by_hand, found + each_invalid(path, name, messages, declared=True))


# --- DeviceTaintRule ----------------------------------------------------------------------

STATUS = root("status")
RULE_CONDITIONS_MAX = 8


class DeviceTaintRuleStrategy(ObjectStrategy[DeviceTaintRule]):
    """The strategy of DeviceTaintRules; timeAdded is when the effect began."""

    allow_unconditional_update = False  # in v1; the older versions allow it
    namespaced = False
    tracks_generation = True

    def default(
        self,
        value: DeviceTaintRule,
        api_version: str,  # noqa: ARG002
        context: Context,
    ) -> DeviceTaintRule:
        """Set the time of the taint."""
        return _with_taint(value, default_taint(value.spec.taint, context.now))

    def prepare_for_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, context: Context
    ) -> DeviceTaintRule:
        """Keep the status; a new effect without a new time starts now."""
        taint, before = new.spec.taint, old.spec.taint
        if taint.effect != before.effect and taint.time_added == before.time_added:
            new = _with_taint(new, replace(taint, time_added=context.now.truncated()))
        return super().prepare_for_update(new, old, context)

    def validate(self, new: DeviceTaintRule, context: Context) -> ErrorList:
        """Validate everything."""
        return self.validate_metadata(new) + _validate_rule_spec(new.spec, None, context)

    def validate_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, context: Context
    ) -> ErrorList:
        """Validate everything but an unchanged effect."""
        found = validate_metadata_update(new.metadata, old.metadata)
        return found + _validate_rule_spec(new.spec, old.spec, context)

    def validate_status(self, new: DeviceTaintRule, old: DeviceTaintRule) -> ErrorList:  # noqa: ARG002
        """Validate the conditions."""
        path, conditions = root("status").child("conditions"), new.status.conditions
        found = validate_conditions(conditions, path)
        if len(conditions) > RULE_CONDITIONS_MAX:
            found.append(too_many(path, len(conditions), RULE_CONDITIONS_MAX))
        return found


def _with_taint(rule: DeviceTaintRule, taint: DeviceTaint) -> DeviceTaintRule:
    return replace(rule, spec=replace(rule.spec, taint=taint))


def _validate_rule_spec(
    spec: DeviceTaintRuleSpec, old: DeviceTaintRuleSpec | None, context: Context
) -> ErrorList:
    found: ErrorList = []
    if spec.device_selector is not None:
        found += _validate_taint_selector(
            spec.device_selector, SPEC.child("deviceSelector"), context
        )
    return found + validate_taint(
        spec.taint, old.taint if old is not None else None, SPEC.child("taint")
    )


def _validate_taint_selector(
    selector: DeviceTaintSelector, path: Path, context: Context
) -> ErrorList:
    found: ErrorList = []
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
        lambda one, place: validate_selector(one, place, context),
        path.child("selectors"),
    )
