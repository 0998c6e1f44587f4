"""The strategy of custom resources, which follows the schema of the request's version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.custom_resource import CustomResource
from moorage.api.field_path import Path, root
from moorage.api.go_type_names import type_name
from moorage.api.kinds import Kind
from moorage.api.raw_json import marshal
from moorage.kit.go_quote import go_quote
from moorage.validation.custom_resources.correlation import Correlated
from moorage.validation.custom_resources.definition import DefinedVersion, definition_of
from moorage.validation.custom_resources.embedded_metadata import validate_embedded
from moorage.validation.custom_resources.list_types import validate_list_types
from moorage.validation.custom_resources.schema_values import NOWHERE
from moorage.validation.errors import ErrorList, ErrorType, FieldError, invalid
from moorage.validation.metadata import (
    STANDARD_FINALIZERS,
    next_generation,
    validate_metadata,
    validate_metadata_update,
)
from moorage.validation.strategy import Context, Strategy

INT32_MAX = 2**31 - 1
_FINALIZERS = "metadata.finalizers"
_QUALIFY = "to avoid accidental conflicts with other finalizer writers"
_BLOCKING = frozenset(
    (
        ErrorType.NOT_SUPPORTED,
        ErrorType.REQUIRED,
        ErrorType.TOO_LONG,
        ErrorType.TOO_MANY,
        ErrorType.TYPE_INVALID,
    )
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)


class CustomResourceStrategy(Strategy[CustomResource]):
    """The strategy of the objects of one kind in one version."""

    allow_unconditional_update = False

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._definition = definition_of(kind)
        self._version: DefinedVersion = self._definition.version(kind.api_version)

    def default(
        self,
        value: CustomResource,
        api_version: str,
        context: Context,  # noqa: ARG002
    ) -> CustomResource:
        """Return an object in a version, with the defaults of its schema."""
        value = self._definition.converted(value, api_version)
        content = self._definition.defaulted_content(value.content, api_version)
        return value if content is value.content else replace(value, content=content)

    def prepare_for_create(
        self,
        new: CustomResource,
        context: Context,  # noqa: ARG002
    ) -> CustomResource:
        """Drop the status if there is a subresource for it; start in generation 1."""
        content = new.content
        if self._version.has_status and "status" in content:
            content = {name: member for name, member in content.items() if name != "status"}
        return replace(new, content=content, metadata=replace(new.metadata, generation=1))

    def prepare_for_update(
        self,
        new: CustomResource,
        old: CustomResource,
        context: Context,  # noqa: ARG002
    ) -> CustomResource:
        """Keep the status if it has a subresource; any other change starts a new generation."""
        before = self._here(old).content
        content = new.content
        if self._version.has_status:
            content = _with_status(content, before)
        metadata = new.metadata
        if marshal(content) != marshal(before):
            metadata = replace(metadata, generation=next_generation(old.metadata.generation))
        return replace(new, content=content, metadata=metadata)

    def prepare_for_status_update(
        self,
        new: CustomResource,
        old: CustomResource,
        context: Context,  # noqa: ARG002
    ) -> CustomResource:
        """Keep everything but the status."""
        here = self._here(old)
        content = _with_status(here.content, new.content)
        metadata = replace(
            old.metadata,
            managed_fields=new.metadata.managed_fields,
            resource_version=new.metadata.resource_version,
        )
        return replace(new, content=content, metadata=metadata)

    def validate(self, new: CustomResource, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate a new object."""
        tree = new.to_tree()
        found = validate_metadata(
            new.metadata, namespaced=self._kind.namespaced, qualified_finalizers=False
        )
        found += self._version.validator.errors(tree)
        found += self._validate_scale(tree, with_spec=True)
        found += validate_embedded(new.content, self._version.structural)
        found += validate_list_types(new.content, self._version.structural, None)
        return found + self._validate_rules(tree, None, found)

    def validate_update(
        self,
        new: CustomResource,
        old: CustomResource,
        context: Context,  # noqa: ARG002
    ) -> ErrorList:
        """Validate a changed object; unchanged values may break rules of the schema."""
        tree, before = new.to_tree(), self._here(old).to_tree()
        schema = self._version.structural
        correlated = Correlated(tree, before, schema)
        found = validate_metadata_update(new.metadata, old.metadata, qualified_finalizers=False)
        found += self._version.validator.errors(tree, None, correlated)
        found += self._validate_scale(tree, with_spec=True)
        found += validate_embedded(new.content, schema)
        found += self._validate_lists(tree, before)
        return found + self._validate_rules(tree, correlated, found)

    def validate_status_update(
        self,
        new: CustomResource,
        old: CustomResource,
        context: Context,  # noqa: ARG002
    ) -> ErrorList:
        """Validate a changed status."""
        tree, before = new.to_tree(), self._here(old).to_tree()
        correlated = Correlated(tree, before, self._version.structural)
        found = validate_metadata_update(new.metadata, old.metadata, qualified_finalizers=False)
        validator = self._version.status_validator
        if validator is not None and "status" in tree:
            found += validator.errors(tree["status"], root("status"), correlated.key("status"))
        found += self._validate_scale(tree, with_spec=False)
        found += self._validate_lists(tree, before)
        return found + self._validate_rules(tree, correlated, found)

    def warnings_on_create(self, new: CustomResource) -> list[str]:
        """Warn of finalizers that others may use, too."""
        return [text for name in sorted(set(new.metadata.finalizers)) for text in _remarks(name)]

    def warnings_on_update(self, new: CustomResource, old: CustomResource) -> list[str]:
        """Warn of new finalizers that others may use, too."""
        added = set(new.metadata.finalizers) - set(old.metadata.finalizers)
        return [text for name in sorted(added) for text in _remarks(name)]

    def _here(self, old: CustomResource) -> CustomResource:
        """Return a stored object in the version of the request."""
        return self._definition.converted(old, self._kind.api_version)

    def _validate_lists(self, new: dict[str, Any], old: dict[str, Any]) -> ErrorList:
        schema = self._version.structural
        found = validate_list_types(new, schema, None)
        return [] if found and validate_list_types(old, schema, None) else found

    def _validate_rules(
        self, tree: dict[str, Any], correlated: Correlated | None, found: ErrorList
    ) -> ErrorList:
        rules = self._version.rules
        if rules is None:
            return []
        if any(error.type in _BLOCKING for error in found):
            return [FieldError(ErrorType.INVALID, NOWHERE, _UNCHECKED, None)]
        return rules.validate(tree, correlated)

    def _validate_scale(self, tree: dict[str, Any], *, with_spec: bool) -> ErrorList:
        scale = self._version.scale
        if scale is None:
            return []
        found = _validate_replicas(tree, scale.spec_replicas_path) if with_spec else []
        found += _validate_replicas(tree, scale.status_replicas_path)
        if scale.label_selector_path:
            found += _validate_text(tree, scale.label_selector_path)
        return found


def _with_status(content: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return content with the status of other content."""
    if "status" in other:
        return {**content, "status": other["status"]}
    if "status" in content:
        return {name: member for name, member in content.items() if name != "status"}
    return content


def _remarks(finalizer: str) -> Iterator[str]:
    shown = f"{_FINALIZERS}: {go_quote(finalizer)}: "
    for fault in names.label_name(finalizer):
        yield shown + fault
    if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in finalizer else ""
        yield f"{shown}prefer a domain-qualified finalizer name{path} {_QUALIFY}"


# --- /scale ---------------------------------------------------------------------------------------


class NestedFieldError(Exception):
    """A value on the way to a field, or the field, has another type."""


def nested_field(tree: dict[str, Any], json_path: str) -> Any:
    """Return the value of a simple path, or None if it does not exist; raise NestedFieldError."""
    steps = json_path.removeprefix(".").split(".")
    here: Any = tree
    for index, name in enumerate(steps):
        if not isinstance(here, dict):
            shown = ".".join(steps[:index])
            raise NestedFieldError(
                f".{shown} accessor error: {here} is of the type {type_name(here)}, expected "
                "map[string]interface{}"
            )
        if name not in here:
            return None
        here = here[name]
    return here


def _validate_replicas(tree: dict[str, Any], json_path: str) -> ErrorList:
    path = Path(json_path)
    try:
        found = nested_field(tree, json_path)
    except NestedFieldError as error:
        return [invalid(path, 0, str(error))]
    if found is None:
        return []
    if isinstance(found, bool) or not isinstance(found, int):
        words = (
            f"{json_path} accessor error: {found} is of the type {type_name(found)}, expected int64"
        )
        return [invalid(path, 0, words)]
    if found < 0:
        return [invalid(path, found, "should be a non-negative integer")]
    if found > INT32_MAX:
        return [invalid(path, found, f"should be less than or equal to {INT32_MAX}")]
    return []


def _validate_text(tree: dict[str, Any], json_path: str) -> ErrorList:
    try:
        found = nested_field(tree, json_path)
    except NestedFieldError as error:
        return [invalid(Path(json_path), "", str(error))]
    if found is None or isinstance(found, str):
        return []
    words = (
        f"{json_path} accessor error: {found} is of the type {type_name(found)}, expected string"
    )
    return [invalid(Path(json_path), "", words)]
