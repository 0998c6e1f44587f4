"""The strategy of CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from moorage.api import names
from moorage.api.apiextensions import (
    ESTABLISHED,
    NONE,
    WEBHOOK,
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
)
from moorage.api.field_path import Path, root
from moorage.api.json_schema import Schema
from moorage.kit.go_quote import go_quote
from moorage.validation.custom_resources.definition_rules import (
    SPEC,
    has_status,
    schema_of,
    schemas_of,
    validate_approval,
    validate_names,
    validate_spec,
    validate_stored,
)
from moorage.validation.custom_resources.formats import NUMBER_FORMATS, format_check
from moorage.validation.custom_resources.rule_compiler import KnownExpressions
from moorage.validation.custom_resources.schema_checks import validate_version_schema
from moorage.validation.custom_resources.structural_rules import children
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, invalid
from moorage.validation.metadata import (
    IMMUTABLE,
    next_generation,
    validate_metadata,
    validate_metadata_update,
)
from moorage.validation.strategy import Context, Strategy

_NAME_RULE = 'must be spec.names.plural+"."+spec.group'
_NOT_CONVERTED = (
    "spec.conversion: this server calls no conversion webhooks; objects can be read and written in "
    "version {} only"
)


class CustomResourceDefinitionStrategy(Strategy[CustomResourceDefinition]):
    """The strategy of CustomResourceDefinitions."""

    allow_unconditional_update = False

    def default(
        self,
        value: CustomResourceDefinition,
        api_version: str,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> CustomResourceDefinition:
        """Set the names that follow from the kind, the conversion and the stored version."""
        spec, given = value.spec, value.spec.names
        if not given.singular:
            given = replace(given, singular=names.lowered(given.kind))
        if not given.list_kind and given.kind:
            given = replace(given, list_kind=f"{given.kind}List")
        conversion = spec.conversion or CustomResourceConversion(strategy=NONE)
        spec = replace(spec, names=given, conversion=_with_port(conversion))
        status = value.status
        if not status.stored_versions and spec.storage_version:
            status = replace(status, stored_versions=(spec.storage_version,))
        return replace(value, spec=spec, status=status)

    def prepare_for_create(
        self,
        new: CustomResourceDefinition,
        context: Context,  # noqa: ARG002
    ) -> CustomResourceDefinition:
        """Start in generation 1, with only the storage version in the status."""
        stored = (new.spec.storage_version,) if new.spec.storage_version else None
        status = CustomResourceDefinitionStatus(stored_versions=stored)
        return replace(new, status=status, metadata=replace(new.metadata, generation=1))

    def prepare_for_update(
        self,
        new: CustomResourceDefinition,
        old: CustomResourceDefinition,
        context: Context,  # noqa: ARG002
    ) -> CustomResourceDefinition:
        """Keep the status; a changed spec starts a new generation, and may add a stored version."""
        status, version = old.status, new.spec.storage_version
        if version and version not in (status.stored_versions or ()):
            stored = (*(status.stored_versions or ()), version)
            status = replace(status, stored_versions=stored)
        metadata = new.metadata
        if not semantic_equal(new.spec, old.spec):
            metadata = replace(metadata, generation=next_generation(old.metadata.generation))
        return replace(new, status=status, metadata=metadata)

    def validate(self, new: CustomResourceDefinition, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate a new definition."""

        def validate_name(name: str) -> list[str]:
            wanted = f"{new.spec.names.plural}.{new.spec.group}"
            return names.dns1123_subdomain(name) + ([_NAME_RULE] if name != wanted else [])

        found = validate_metadata(
            new.metadata, namespaced=False, validate_name=validate_name, qualified_finalizers=False
        )
        found += _validate_fields(new, KnownExpressions())
        return found + validate_approval(new, None)

    def validate_update(
        self,
        new: CustomResourceDefinition,
        old: CustomResourceDefinition,
        context: Context,  # noqa: ARG002
    ) -> ErrorList:
        """Validate a changed definition: what decides where objects are stored is immutable."""
        found = validate_metadata_update(new.metadata, old.metadata, qualified_finalizers=False)
        found += _validate_fields(new, KnownExpressions.of(old.spec, new.spec))
        after, before = new.spec, old.spec
        fixed = [
            (SPEC.child("group"), after.group, before.group),
            (SPEC.child("names", "plural"), after.names.plural, before.names.plural),
        ]
        if old.is_true(ESTABLISHED):
            fixed += [
                (SPEC.child("scope"), after.scope, before.scope),
                (SPEC.child("names", "kind"), after.names.kind, before.names.kind),
            ]
        found += [invalid(path, now, IMMUTABLE) for path, now, was in fixed if now != was]
        return found + validate_approval(new, old)

    def prepare_for_status_update(
        self,
        new: CustomResourceDefinition,
        old: CustomResourceDefinition,
        context: Context,  # noqa: ARG002
    ) -> CustomResourceDefinition:
        """Keep the spec."""
        return replace(new, spec=old.spec)

    def validate_status_update(
        self,
        new: CustomResourceDefinition,
        old: CustomResourceDefinition,
        context: Context,  # noqa: ARG002
    ) -> ErrorList:
        """Validate the status."""
        found = validate_metadata_update(new.metadata, old.metadata, qualified_finalizers=False)
        return found + _validate_accepted(new)

    def warnings_on_create(self, new: CustomResourceDefinition) -> list[str]:
        """Warn of formats without effect, sets of structs, and conversion webhooks."""
        return list(_warnings(new.spec))

    def warnings_on_update(
        self, new: CustomResourceDefinition, old: CustomResourceDefinition
    ) -> list[str]:
        """Warn of the same, if it is new."""
        known = set(_warnings(old.spec))
        return [text for text in _warnings(new.spec) if text not in known]


def _with_port(conversion: CustomResourceConversion) -> CustomResourceConversion:
    webhook = conversion.webhook
    config = None if webhook is None else webhook.client_config
    service = None if config is None else config.service
    if webhook is None or config is None or service is None or service.port is not None:
        return conversion
    config = replace(config, service=replace(service, port=443))
    return replace(conversion, webhook=replace(webhook, client_config=config))


def _validate_fields(new: CustomResourceDefinition, known: KnownExpressions) -> ErrorList:
    found = validate_spec(new.spec)
    for part in schemas_of(new.spec):
        tree = None if part.value is None else part.value.schema
        if tree is None:
            continue
        versions = [v for v in new.spec.versions if part.version in ("", v.name)]
        with_status = any(map(has_status, versions))
        path = part.path.child("openAPIV3Schema")
        is_known = known.is_unchanged(versions)
        found += validate_version_schema(tree, path, has_status=with_status, is_unchanged=is_known)
    return found + _validate_accepted(new) + validate_stored(new)


def _validate_accepted(new: CustomResourceDefinition) -> ErrorList:
    path: Path = root("status").child("acceptedNames")
    return validate_names(new.status.accepted_names, path)


# --- warnings -------------------------------------------------------------------------------------


def _warnings(spec: CustomResourceDefinitionSpec) -> Iterator[str]:
    trees = [tree for version in spec.versions if (tree := schema_of(version)) is not None]
    for tree in trees:
        yield from _walked(tree, _unrecognized_format)
    found = {text for tree in trees for text in _walked(tree, _set_of_structs)}
    yield from sorted(found)
    has_webhook = spec.conversion is not None and spec.conversion.strategy == WEBHOOK
    if has_webhook and sum(version.served for version in spec.versions) > 1:
        yield _NOT_CONVERTED.format(spec.storage_version)


def _walked(tree: Schema, warning: Callable[[Schema], str]) -> Iterator[str]:
    left = [tree]
    while left:
        here = left.pop()
        if text := warning(here):
            yield text
        left += [each for _, each in children(here)]


def _unrecognized_format(tree: Schema) -> str:
    name, kind = tree.get("format", ""), tree.get("type", "")
    if not name:
        return ""
    if kind in ("", "string"):
        is_known = format_check(name) is not None
    else:
        is_known = name in NUMBER_FORMATS.get(kind, ())
    return "" if is_known else f"unrecognized format {go_quote(name)}"


def _set_of_structs(tree: Schema) -> str:
    items = tree.get("items")
    if tree.get("x-kubernetes-list-type") != "set" or not isinstance(items, dict):
        return ""
    if items.get("type") not in ("object", "array"):
        return ""
    return (
        f"x-kubernetes-list-type: set for items of type {go_quote(items['type'])} is not supported "
        "by server-side apply or CEL validation rules"
    )
