"""How ResourceClaimTemplates are admitted: as the claims they make, and never changed."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.api.fieldpath import root
from mooring.api.gates import Gate
from mooring.api.resource.v1 import ResourceClaimTemplate
from mooring.api.timestamp import Timestamp
from mooring.validation import claimfeatures
from mooring.validation.claimfeatures import drop_disabled
from mooring.validation.claimlayout import internal_template
from mooring.validation.claimspec import check_claim_spec
from mooring.validation.context import Context
from mooring.validation.equality import same
from mooring.validation.errors import Errors, invalid
from mooring.validation.metadata import (
    IMMUTABLE,
    check_metadata,
    check_metadata_update,
    check_template_metadata,
)
from mooring.validation.resourceclaim import check_admin_access, default_claim_spec
from mooring.validation.strategy import Strategy

SPEC = root("spec")


class ResourceClaimTemplateStrategy(Strategy[ResourceClaimTemplate]):
    """Admission of ResourceClaimTemplates."""

    def default(
        self,
        value: ResourceClaimTemplate,
        api_version: str,
        now: Timestamp,  # noqa: ARG002
    ) -> ResourceClaimTemplate:
        """Set mode, count and toleration operators."""
        spec = default_claim_spec(value.spec.spec, api_version)
        return replace(value, spec=replace(value.spec, spec=spec))

    def disabled(
        self, new: ResourceClaimTemplate, old: ResourceClaimTemplate | None, context: Context
    ) -> Iterable[Gate]:
        """Return the gates whose fields the template loses."""
        before = old.spec.spec if old is not None else None
        return claimfeatures.disabled(new.spec.spec, before, context)

    def prepare_create(self, new: ResourceClaimTemplate, context: Context) -> ResourceClaimTemplate:
        """Drop disabled fields."""
        spec = drop_disabled(new.spec.spec, None, context)
        return replace(new, spec=replace(new.spec, spec=spec))

    def check_create(self, new: ResourceClaimTemplate, context: Context) -> Errors:
        """Check everything."""
        found = check_admin_access(new.spec.spec.devices, context)
        return found + self._check(new, context)

    def prepare_update(
        self, new: ResourceClaimTemplate, old: ResourceClaimTemplate, context: Context
    ) -> ResourceClaimTemplate:
        """Drop disabled fields that were not in use."""
        spec = drop_disabled(new.spec.spec, old.spec.spec, context)
        return replace(new, spec=replace(new.spec, spec=spec))

    def check_update(
        self, new: ResourceClaimTemplate, old: ResourceClaimTemplate, context: Context
    ) -> Errors:
        """Check everything, and that the spec is as it was."""
        found = self._check(new, context) + check_metadata_update(new.metadata, old.metadata)
        if not same(new.spec, old.spec):
            found.append(invalid(SPEC, internal_template(new.spec), IMMUTABLE))
        return found

    def _check(self, new: ResourceClaimTemplate, context: Context) -> Errors:
        found = check_metadata(new.metadata, namespaced=True)
        found += check_template_metadata(new.spec.metadata, SPEC.child("metadata"))
        return found + check_claim_spec(new.spec.spec, SPEC.child("spec"), context)
