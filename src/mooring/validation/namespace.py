"""How Namespaces and ServiceAccounts are admitted."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api import names
from mooring.api.core.namespace import ACTIVE, TERMINATING, Namespace, ServiceAccount
from mooring.api.core.references import ObjectReference
from mooring.api.fieldpath import root
from mooring.validation.checks import label_name
from mooring.validation.context import Context
from mooring.validation.errors import Errors, invalid
from mooring.validation.metadata import STANDARD_FINALIZERS, check_metadata_update
from mooring.validation.ordinary import OrdinaryStrategy

FINALIZERS = root("spec").child("finalizers")


class NamespaceStrategy(OrdinaryStrategy[Namespace]):
    """Admission of Namespaces."""

    namespaced = False
    check_name = staticmethod(names.dns1123_label)

    def check_create(self, new: Namespace, context: Context) -> Errors:
        """Check the metadata, and who may hold the namespace."""
        found = super().check_create(new, context)
        for finalizer in new.spec.finalizers:
            found += label_name(finalizer, FINALIZERS)
            if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
                detail = "name is neither a standard finalizer name nor is it fully qualified"
                found.append(invalid(FINALIZERS, finalizer, detail))
        return found

    def prepare_update(self, new: Namespace, old: Namespace, context: Context) -> Namespace:  # noqa: ARG002
        """Keep who holds the namespace, and the status."""
        return replace(new, spec=old.spec, status=old.status)

    def prepare_status(self, new: Namespace, old: Namespace, context: Context) -> Namespace:
        """Keep all but the status; a namespace of which nothing is said is in use."""
        new = super().prepare_status(new, old, context)
        status = new.status
        return new if status.phase else replace(new, status=replace(status, phase=ACTIVE))

    def status_rules(self, new: Namespace, old: Namespace) -> Errors:
        """Check that a namespace goes away exactly if it is deleted."""
        phase, path = new.status.phase, root("status").child("Phase")
        is_deleted = old.metadata.deletion_timestamp is not None
        if phase == (TERMINATING if is_deleted else ACTIVE):
            return []
        if is_deleted:
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        else:
            detail = "may only be 'Active' if `deletionTimestamp` is empty"
        return [invalid(path, phase, detail)]


class ServiceAccountStrategy(OrdinaryStrategy[ServiceAccount]):
    """Admission of ServiceAccounts."""

    def prepare_create(self, new: ServiceAccount, context: Context) -> ServiceAccount:  # noqa: ARG002
        """Keep nothing of secrets but their names."""
        return _with_plain_secrets(new)

    def prepare_update(
        self,
        new: ServiceAccount,
        old: ServiceAccount,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> ServiceAccount:
        """Keep nothing of secrets but their names."""
        return _with_plain_secrets(new)

    def check_update(
        self,
        new: ServiceAccount,
        old: ServiceAccount,
        context: Context,  # noqa: ARG002
    ) -> Errors:
        """Check the metadata."""
        return check_metadata_update(new.metadata, old.metadata) + self.check_metadata(new)


def _with_plain_secrets(account: ServiceAccount) -> ServiceAccount:
    secrets = tuple(ObjectReference(name=secret.name) for secret in account.secrets)
    return replace(account, secrets=secrets)
