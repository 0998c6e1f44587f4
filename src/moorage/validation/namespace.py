"""Strategies of Namespaces, ServiceAccounts, ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

from msgspec.structs import replace

from moorage.api import names
from moorage.api.core.namespace import (
    ACTIVE,
    NAME_LABEL,
    TERMINATING,
    ConfigMap,
    Namespace,
    ObjectReference,
    Secret,
    ServiceAccount,
)
from moorage.api.field_path import Path, root
from moorage.api.names import byte_length
from moorage.validation.errors import ErrorList, forbidden, invalid, required, too_long
from moorage.validation.field_rules import each_invalid, label_name, unchanged
from moorage.validation.metadata import METADATA, STANDARD_FINALIZERS, validate_metadata_update
from moorage.validation.strategy import Context, ObjectStrategy

FINALIZERS = root("spec").child("finalizers")


class NamespaceStrategy(ObjectStrategy[Namespace]):
    """The strategy of Namespaces."""

    namespaced = False
    keeps_metadata_with_status = False
    validate_name = staticmethod(names.dns1123_label)

    def default(self, value: Namespace, api_version: str, context: Context) -> Namespace:  # noqa: ARG002
        """Set the label with the name, unless the server is yet to generate the name."""
        metadata = value.metadata
        if not metadata.name:
            return value
        labels = {**metadata.labels, NAME_LABEL: metadata.name}
        return replace(value, metadata=replace(metadata, labels=labels))

    def validate_fields(self, new: Namespace) -> ErrorList:
        """Validate finalizers."""
        found: ErrorList = []
        for finalizer in new.spec.finalizers:
            found += label_name(finalizer, FINALIZERS)
            if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
                detail = "name is neither a standard finalizer name nor is it fully qualified"
                found.append(invalid(FINALIZERS, finalizer, detail))
        return found

    def validate_update(self, new: Namespace, old: Namespace, context: Context) -> ErrorList:
        """Validate everything."""
        return self.validate_metadata(new) + super().validate_update(new, old, context)

    def prepare_for_update(self, new: Namespace, old: Namespace, context: Context) -> Namespace:  # noqa: ARG002
        """Keep spec and status."""
        return replace(new, spec=old.spec, status=old.status)

    def prepare_for_status_update(
        self, new: Namespace, old: Namespace, context: Context
    ) -> Namespace:
        """Keep everything but the status; the default phase is Active."""
        new = super().prepare_for_status_update(new, old, context)
        status = new.status
        return new if status.phase else replace(new, status=replace(status, phase=ACTIVE))

    def validate_status(self, new: Namespace, old: Namespace) -> ErrorList:  # noqa: ARG002
        """Validate that the phase is Terminating exactly if the namespace is deleted."""
        phase, path = new.status.phase, root("status").child("Phase")
        is_deleted = new.metadata.deletion_timestamp is not None
        if phase == (TERMINATING if is_deleted else ACTIVE):
            return []
        if is_deleted:
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        else:
            detail = "may only be 'Active' if `deletionTimestamp` is empty"
        return [invalid(path, phase, detail)]


class ServiceAccountStrategy(ObjectStrategy[ServiceAccount]):
    """The strategy of ServiceAccounts."""

    def prepare_for_create(self, new: ServiceAccount, context: Context) -> ServiceAccount:  # noqa: ARG002
        """Keep only the names of secrets."""
        return _with_plain_secrets(new)

    def prepare_for_update(
        self,
        new: ServiceAccount,
        old: ServiceAccount,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> ServiceAccount:
        """Keep only the names of secrets."""
        return _with_plain_secrets(new)

    def validate_update(
        self,
        new: ServiceAccount,
        old: ServiceAccount,
        context: Context,  # noqa: ARG002
    ) -> ErrorList:
        """Validate the metadata."""
        return validate_metadata_update(new.metadata, old.metadata) + self.validate_metadata(new)


def _with_plain_secrets(account: ServiceAccount) -> ServiceAccount:
    secrets = tuple(ObjectReference(name=secret.name) for secret in account.secrets)
    return replace(account, secrets=secrets)


# --- ConfigMaps and Secrets ---------------------------------------------------------------

SIZE_MAX_BYTES = 1024 * 1024

DATA = root("data")
OPAQUE = "Opaque"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # a type of secrets  # noqa: S105

# The keys that a secret of a type requires.
_NEEDED = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_LOGIN = "kubernetes.io/basic-auth"
_REDACTED = "<secret contents redacted>"

_SEALED = "field is immutable when `immutable` is set"


class ConfigMapStrategy(ObjectStrategy[ConfigMap]):
    """The strategy of ConfigMaps."""

    def validate_fields(self, new: ConfigMap) -> ErrorList:
        """Validate keys and size."""
        found: ErrorList = []
        for key in new.data:
            found += _validate_data_key(key, DATA)
            if key in new.binary_data:
                detail = "duplicate of key present in binaryData"
                found.append(invalid(DATA.key(key), key, detail))
        for key in new.binary_data:
            found += _validate_data_key(key, root("binaryData"))
        size = sum(map(byte_length, new.data.values())) + _size(new.binary_data)
        if size > SIZE_MAX_BYTES:
            found.append(too_long(root(""), SIZE_MAX_BYTES))
        return found

    def validate_update(self, new: ConfigMap, old: ConfigMap, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything, and that immutable data is unchanged."""
        found = validate_metadata_update(new.metadata, old.metadata)
        if old.immutable:
            found += _validate_sealed(
                immutable=new.immutable is True,
                data=new.data == old.data,
                binaryData=new.binary_data == old.binary_data,
            )
        return found + self.validate_metadata(new) + self.validate_fields(new)


class SecretStrategy(ObjectStrategy[Secret]):
    """The strategy of Secrets."""

    def default(self, value: Secret, api_version: str, context: Context) -> Secret:  # noqa: ARG002
        """Encode stringData into data; the default type is Opaque."""
        texts = {
            name: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
            for name, text in value.string_data.items()
        }
        data = {**value.data, **texts}
        return replace(value, data=data, string_data={}, type=value.type or OPAQUE)

    def validate_fields(self, new: Secret) -> ErrorList:
        """Validate keys, size, and the keys that the type requires."""
        found: ErrorList = []
        for key in new.data:
            found += _validate_data_key(key, DATA)
        if _size(new.data) > SIZE_MAX_BYTES:
            found.append(too_long(DATA, SIZE_MAX_BYTES))
        return found + _validate_secret_type(new)

    def validate_update(self, new: Secret, old: Secret, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything, and that the type and immutable data are unchanged."""
        found = validate_metadata_update(new.metadata, old.metadata)
        found += unchanged(new.type, old.type, root("type"))
        if old.immutable:
            found += _validate_sealed(immutable=new.immutable is True, data=new.data == old.data)
        return found + self.validate_metadata(new) + self.validate_fields(new)


def _validate_data_key(key: str, path: Path) -> ErrorList:
    return each_invalid(path.key(key), key, names.config_key(key))


def _validate_sealed(**kept: bool) -> ErrorList:
    return [forbidden(root(name), _SEALED) for name, is_kept in kept.items() if not is_kept]


def _size(data: Mapping[str, str]) -> int:
    """Return the decoded size of texts in base64."""
    return sum(len(text) * 3 // 4 - text[-2:].count("=") for text in data.values())


# --- types of secrets ---------------------------------------------------------------------


def _validate_secret_type(secret: Secret) -> ErrorList:
    data = secret.data
    if secret.type == ACCOUNT_TOKEN and not secret.metadata.annotations.get(ACCOUNT_NAME):
        return [required(METADATA.child("annotations").key(ACCOUNT_NAME))]
    if secret.type == _LOGIN and not data.keys() & {"username", "password"}:
        return [required(DATA.key("username")), required(DATA.key("password"))]
    if secret.type in _DOCKER:
        return _validate_docker(data, _DOCKER[secret.type])
    needed = _NEEDED.get(secret.type, ())
    may_be_empty = secret.type == "kubernetes.io/tls"
    return [
        required(DATA.key(key))
        for key in needed
        if key not in data or not (data[key] or may_be_empty)
    ]


def _validate_docker(data: Mapping[str, str], key: str) -> ErrorList:
    if key not in data:
        return [required(DATA.key(key))]
    try:
        content = json.loads(base64.b64decode(data[key]))
    except (ValueError, binascii.Error, RecursionError):
        content = None
    if isinstance(content, dict):
        return []
    return [invalid(DATA.key(key), _REDACTED, "must be a JSON object")]
