"""How kinds are admitted that have nothing to do with devices.

Their metadata is checked, then what `rules` and `changes` of the kind say. A status is the
business of its subresource, and generations count changes of the spec where Kubernetes counts.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mooring.api import names
from mooring.api.meta import ObjectMeta
from mooring.validation.context import Context
from mooring.validation.equality import same
from mooring.validation.errors import Errors
from mooring.validation.metadata import (
    NameCheck,
    check_metadata,
    check_metadata_update,
    next_generation,
)
from mooring.validation.strategy import Strategy

O = TypeVar("O", bound=Struct)  # noqa: E741


class OrdinaryStrategy(Strategy[O]):
    """Admission by the metadata, and by the rules that a kind adds."""

    namespaced = True
    counts_generations = False
    check_name: NameCheck = staticmethod(names.dns1123_subdomain)

    def rules(self, new: O) -> Errors:  # noqa: ARG002
        """Return what is wrong with an object, new or changed, besides its metadata."""
        return []

    def changes(self, new: O, old: O) -> Errors:  # noqa: ARG002
        """Return what a change may not change."""
        return []

    def status_rules(self, new: O, old: O) -> Errors:  # noqa: ARG002
        """Return what is wrong with a status."""
        return []

    def drop_disabled(self, new: O, old: O | None, context: Context) -> O:  # noqa: ARG002
        """Return an object without fields of disabled features that the old one does not use."""
        return new

    def prepare_create(self, new: O, context: Context) -> O:
        """Start a new status and count from one."""
        new = self.drop_disabled(new, None, context)
        if hasattr(new, "status"):
            new = replace(new, status=type(new.status)())
        return _with_generation(new, 1) if self.counts_generations else new

    def check_create(self, new: O, context: Context) -> Errors:  # noqa: ARG002
        """Check everything."""
        return self.check_metadata(new) + self.rules(new)

    def prepare_update(self, new: O, old: O, context: Context) -> O:
        """Keep the status; a changed spec is a new generation."""
        before: Any = old
        new = self.drop_disabled(new, old, context)
        if hasattr(new, "status"):
            new = replace(new, status=before.status)
        if not self.counts_generations or same(_spec(new), before.spec):
            return new
        return _with_generation(new, next_generation(before.metadata.generation))

    def check_update(self, new: O, old: O, context: Context) -> Errors:  # noqa: ARG002
        """Check everything, and that nothing changed that may not."""
        return _check_metadata_update(new, old) + self.rules(new) + self.changes(new, old)

    def prepare_status(self, new: O, old: O, context: Context) -> O:  # noqa: ARG002
        """Keep all but the status and the owners of fields."""
        value: Any = new
        before: Any = old
        metadata = replace(before.metadata, managed_fields=value.metadata.managed_fields)
        return replace(old, status=value.status, metadata=metadata)

    def check_status(self, new: O, old: O, context: Context) -> Errors:  # noqa: ARG002
        """Check the status."""
        return _check_metadata_update(new, old) + self.status_rules(new, old)

    def check_metadata(self, new: O) -> Errors:
        """Check the metadata, if the kind has any."""
        metadata: ObjectMeta | None = getattr(new, "metadata", None)
        if metadata is None:
            return []
        return check_metadata(metadata, namespaced=self.namespaced, check_name=self.check_name)


def _check_metadata_update(new: Any, old: Any) -> Errors:
    return check_metadata_update(new.metadata, old.metadata)


def _spec(value: Any) -> Any:
    return value.spec


def _with_generation(value: O, generation: int) -> O:
    counted: Any = value
    return replace(value, metadata=replace(counted.metadata, generation=generation))
