"""How ConfigMaps and Secrets are admitted: what programs read by name."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

from msgspec.structs import replace

from mooring.api import names
from mooring.api.core.namespace import ConfigMap, Secret
from mooring.api.fieldpath import Path, root
from mooring.api.names import byte_length
from mooring.api.timestamp import Timestamp
from mooring.validation.checks import each_invalid, unchanged
from mooring.validation.context import Context
from mooring.validation.errors import Errors, forbidden, invalid, required, too_long
from mooring.validation.metadata import METADATA, check_metadata_update
from mooring.validation.ordinary import OrdinaryStrategy

SIZE_MAX_BYTES = 1024 * 1024

DATA = root("data")
OPAQUE = "Opaque"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105  # a type of secrets

# What a secret of a type must have.
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


class ConfigMapStrategy(OrdinaryStrategy[ConfigMap]):
    """Admission of ConfigMaps."""

    def rules(self, new: ConfigMap) -> Errors:
        """Check keys and size."""
        found: Errors = []
        for key in new.data:
            found += _check_key(key, DATA)
            if key in new.binary_data:
                detail = "duplicate of key present in binaryData"
                found.append(invalid(DATA.key(key), key, detail))
        for key in new.binary_data:
            found += _check_key(key, root("binaryData"))
        size = sum(map(byte_length, new.data.values())) + _size(new.binary_data)
        if size > SIZE_MAX_BYTES:
            found.append(too_long(root(""), SIZE_MAX_BYTES))
        return found

    def check_update(self, new: ConfigMap, old: ConfigMap, context: Context) -> Errors:  # noqa: ARG002
        """Check everything, and that what is sealed stays."""
        found = check_metadata_update(new.metadata, old.metadata)
        if old.immutable:
            found += _check_sealed(
                immutable=new.immutable is True,
                data=new.data == old.data,
                binaryData=new.binary_data == old.binary_data,
            )
        return found + self.check_metadata(new) + self.rules(new)


class SecretStrategy(OrdinaryStrategy[Secret]):
    """Admission of Secrets."""

    def default(self, value: Secret, api_version: str, now: Timestamp) -> Secret:  # noqa: ARG002
        """Make bytes of texts; a secret that says no type is opaque."""
        texts = {
            name: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
            for name, text in value.string_data.items()
        }
        data = {**value.data, **texts}
        return replace(value, data=data, string_data={}, type=value.type or OPAQUE)

    def rules(self, new: Secret) -> Errors:
        """Check keys, size, and what the type asks for."""
        found: Errors = []
        for key in new.data:
            found += _check_key(key, DATA)
        if _size(new.data) > SIZE_MAX_BYTES:
            found.append(too_long(DATA, SIZE_MAX_BYTES))
        return found + _check_type(new)

    def check_update(self, new: Secret, old: Secret, context: Context) -> Errors:  # noqa: ARG002
        """Check everything, that the type stays, and what is sealed."""
        found = check_metadata_update(new.metadata, old.metadata)
        found += unchanged(new.type, old.type, root("type"))
        if old.immutable:
            found += _check_sealed(immutable=new.immutable is True, data=new.data == old.data)
        return found + self.check_metadata(new) + self.rules(new)


def _check_key(key: str, path: Path) -> Errors:
    return each_invalid(path.key(key), key, names.config_key(key))


def _check_sealed(**kept: bool) -> Errors:
    return [forbidden(root(name), _SEALED) for name, is_kept in kept.items() if not is_kept]


def _size(data: Mapping[str, str]) -> int:
    """Return how many bytes texts in base64 stand for."""
    return sum(len(text) * 3 // 4 - text[-2:].count("=") for text in data.values())


# --- types of secrets ---------------------------------------------------------------------


def _check_type(secret: Secret) -> Errors:
    data = secret.data
    if secret.type == ACCOUNT_TOKEN and not secret.metadata.annotations.get(ACCOUNT_NAME):
        return [required(METADATA.child("annotations").key(ACCOUNT_NAME))]
    if secret.type == _LOGIN and not data.keys() & {"username", "password"}:
        return [required(DATA.key("username")), required(DATA.key("password"))]
    if secret.type in _DOCKER:
        return _check_docker(data, _DOCKER[secret.type])
    needed = _NEEDED.get(secret.type, ())
    may_be_empty = secret.type == "kubernetes.io/tls"
    return [
        required(DATA.key(key))
        for key in needed
        if key not in data or not (data[key] or may_be_empty)
    ]


def _check_docker(data: Mapping[str, str], key: str) -> Errors:
    if key not in data:
        return [required(DATA.key(key))]
    try:
        content = json.loads(base64.b64decode(data[key]))
    except (ValueError, binascii.Error, RecursionError):
        content = None
    if isinstance(content, dict):
        return []
    return [invalid(DATA.key(key), _REDACTED, "must be a JSON object")]
