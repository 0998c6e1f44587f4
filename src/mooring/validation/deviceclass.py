"""How DeviceClasses are admitted; what an update leaves alone is not checked again."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api import names
from mooring.api.fieldpath import Path, root
from mooring.api.gates import Gate
from mooring.api.names import BYTES
from mooring.api.resource.v1 import DeviceClass, DeviceClassSpec
from mooring.validation.checks import both, declared_list, each_invalid
from mooring.validation.context import Context
from mooring.validation.devices import SELECTORS_MAX, check_opaque, check_selector
from mooring.validation.equality import same
from mooring.validation.errors import Errors, invalid
from mooring.validation.metadata import (
    check_metadata,
    check_metadata_update,
    check_path_segments,
    next_generation,
)
from mooring.validation.strategy import Strategy

SPEC = root("spec")
CONFIG_MAX = 32


class DeviceClassStrategy(Strategy[DeviceClass]):
    """Admission of DeviceClasses."""

    def prepare_create(self, new: DeviceClass, context: Context) -> DeviceClass:
        """Start counting generations; drop disabled fields."""
        metadata = replace(new.metadata, generation=1)
        return _drop_disabled(replace(new, metadata=metadata), None, context)

    def check_create(self, new: DeviceClass, context: Context) -> Errors:
        """Check everything."""
        found = _check_metadata(new) + _check_spec(new.spec, None, context)
        return found or check_path_segments(new.metadata, namespaced=False)

    def prepare_update(self, new: DeviceClass, old: DeviceClass, context: Context) -> DeviceClass:
        """Drop disabled fields; a changed spec is a new generation."""
        new = _drop_disabled(new, old, context)
        if same(new.spec, old.spec):
            return new
        generation = next_generation(old.metadata.generation)
        return replace(new, metadata=replace(new.metadata, generation=generation))

    def check_update(self, new: DeviceClass, old: DeviceClass, context: Context) -> Errors:
        """Check everything but expressions and configuration that stay as they were."""
        found = _check_metadata(new) + check_metadata_update(new.metadata, old.metadata)
        return found + _check_spec(new.spec, old.spec, context)


def _check_metadata(new: DeviceClass) -> Errors:
    return check_metadata(
        new.metadata,
        namespaced=False,
        check_name=lambda name: names.dns1123_subdomain(name, unit=BYTES),
        check_prefix=False,
        declared_name=True,
    )


def _drop_disabled(new: DeviceClass, old: DeviceClass | None, context: Context) -> DeviceClass:
    if context.enabled(Gate.DRA_EXTENDED_RESOURCE):
        return new
    if old is not None and old.spec.extended_resource_name is not None:
        return new
    return replace(new, spec=replace(new.spec, extended_resource_name=None))


def _check_spec(spec: DeviceClassSpec, old: DeviceClassSpec | None, context: Context) -> Errors:
    selectors_stored = old is not None and same(spec.selectors, old.selectors)
    found = declared_list(
        spec.selectors,
        SELECTORS_MAX,
        lambda selector, path: check_selector(selector, path, context, stored=selectors_stored),
        SPEC.child("selectors"),
    )
    config_stored = old is not None and same(spec.config, old.config)
    found += declared_list(
        spec.config,
        CONFIG_MAX,
        lambda config, path: check_opaque(config.opaque, path, stored=config_stored),
        SPEC.child("config"),
    )
    if spec.extended_resource_name is not None:
        place = SPEC.child("extendedResourceName")
        found += _check_extended_resource_name(spec.extended_resource_name, place)
    return found


def _check_extended_resource_name(name: str, path: Path) -> Errors:
    by_hand: Errors = []
    if not names.is_extended_resource(name):
        by_hand.append(invalid(path, name, "must be a valid extended resource name"))
    found: Errors = []
    if "/" not in name:
        detail = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        found.append(invalid(path, name, detail, declared=True))
    elif "kubernetes.io/" in name:
        detail = 'must not have "kubernetes.io/" domain'
        found.append(invalid(path, name, detail, declared=True))
    if name.startswith("requests."):
        found.append(invalid(path, name, 'must not have "requests." prefix', declared=True))
    # As a quota the name gets this prefix, and must still be a label key.
    messages = names.label_name(f"requests.{name}")
    return both(by_hand, found + each_invalid(path, name, messages, declared=True))
