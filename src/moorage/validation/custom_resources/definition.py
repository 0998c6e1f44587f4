"""Compiled definitions: what a server needs to serve custom resources.

Each version of a CustomResourceDefinition is compiled once. Validators and expressions are compiled
when they are first needed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from msgspec.structs import replace

from moorage.api.apiextensions import (
    NAMESPACED,
    WEBHOOK,
    CustomResourceDefinition,
    CustomResourceDefinitionVersion,
    CustomResourceSubresourceScale,
)
from moorage.api.custom_resource import CustomResource, custom_struct
from moorage.api.json_schema import Schema
from moorage.api.kinds import Kind
from moorage.validation.custom_resources.defaulting import defaulted
from moorage.validation.custom_resources.definition_rules import has_status, schema_of
from moorage.validation.custom_resources.pruning import pruned
from moorage.validation.custom_resources.rule_validator import (
    RuleValidator,
    has_rules,
    rule_validator,
)
from moorage.validation.custom_resources.schema_validator import SchemaValidator
from moorage.validation.custom_resources.structural import Structural, structural
from moorage.validation.custom_resources.structural_rules import children


class DefinedVersion:
    """One version of a resource."""

    def __init__(self, given: CustomResourceDefinitionVersion) -> None:
        self.given = given
        self.tree: Schema = schema_of(given) or {"x-kubernetes-preserve-unknown-fields": True}
        self.structural: Structural = structural(self.tree)
        self.has_rules = has_rules(self.structural)
        self.branches = count_branches(self.tree)  # of allOf, anyOf, oneOf and not

    @cached_property
    def validator(self) -> SchemaValidator:
        """The validator of whole objects."""
        return SchemaValidator(self.tree)

    @cached_property
    def status_validator(self) -> SchemaValidator | None:
        """The validator of the status alone."""
        tree = self.tree.get("properties", {}).get("status")
        return None if tree is None else SchemaValidator(tree)

    @cached_property
    def rules(self) -> RuleValidator | None:
        """The rules of the schema, or None without any."""
        return rule_validator(self.structural)

    @property
    def is_compiled(self) -> bool:
        """Whether the validator is compiled already."""
        return "validator" in self.__dict__

    @property
    def has_status(self) -> bool:
        """Whether the version has the subresource /status."""
        return has_status(self.given)

    @property
    def scale(self) -> CustomResourceSubresourceScale | None:
        """The fields of /scale, if it is served."""
        return None if self.given.subresources is None else self.given.subresources.scale

    @property
    def subresources(self) -> frozenset[str]:
        """The subresources that are served."""
        found = {"status"} if self.has_status else set()
        return frozenset(found | ({"scale"} if self.scale is not None else set()))


def count_branches(tree: Schema) -> int:
    """Return the number of schemas in branches that may also validate a value."""
    left, found = [tree], 0
    while left:
        for steps, each in children(left.pop()):
            found += steps[0] in ("allOf", "anyOf", "oneOf", "not")
            left.append(each)
    return found


class CompiledDefinition:
    """A definition whose names are accepted, and the kinds that it defines."""

    def __init__(self, given: CustomResourceDefinition) -> None:
        spec = given.spec
        self.given = given
        self.names = given.status.accepted_names if given.status.accepted_names.kind else spec.names
        self.group = spec.group
        self.namespaced = spec.scope == NAMESPACED
        self.versions = {version.name: DefinedVersion(version) for version in spec.versions}
        self.storage_version = f"{spec.group}/{spec.storage_version}"
        self.has_webhook = spec.conversion is not None and spec.conversion.strategy == WEBHOOK
        self.struct = custom_struct(spec.names.kind, self)

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kind in each served version."""
        return tuple(
            Kind(
                api_version=f"{self.group}/{name}",
                name=self.given.spec.names.kind,
                plural=self.given.spec.names.plural,
                namespaced=self.namespaced,
                struct=self.struct,
                hub_version=self.storage_version,
                has_status=version.has_status,
                short_names=self.names.short_names,
                list_name=self.names.list_kind,
            )
            for name, version in self.versions.items()
            if version.given.served
        )

    def version(self, api_version: str) -> DefinedVersion:
        """Return a version by the apiVersion of its objects, or the stored one."""
        name = api_version.rpartition("/")[2]
        found = self.versions.get(name)
        return found or self.versions[self.storage_version.rpartition("/")[2]]

    def converted(self, value: CustomResource, api_version: str) -> CustomResource:
        """Return an object in another version: with its fields, and its apiVersion."""
        if value.api_version == api_version:
            return value
        content = self.pruned_content(value.content, api_version)
        return replace(value, api_version=api_version, content=content)

    def as_stored(self, value: CustomResource) -> CustomResource:
        """Return a stored object in the storage version, by the current schema."""
        before = value.api_version or self.storage_version
        content = self.pruned_content(value.content, before)
        content = self.defaulted_content(content, before)
        kind = self.given.spec.names.kind
        value = replace(value, api_version=before, kind=kind, content=content)
        return self.converted(value, self.storage_version)

    def pruned_content(self, content: dict[str, Any], api_version: str) -> dict[str, Any]:
        """Return content without the fields that the schema of a version lacks."""
        found: dict[str, Any] = pruned(content, self.version(api_version).structural, [])
        return found

    def defaulted_content(self, content: dict[str, Any], api_version: str) -> dict[str, Any]:
        """Return content with the defaults of a version."""
        found: dict[str, Any] = defaulted(content, self.version(api_version).structural)
        return found


def definition_of(kind: Kind) -> CompiledDefinition:
    """Return the definition of a custom kind."""
    struct: Any = kind.struct
    found: CompiledDefinition = struct.definition
    return found
