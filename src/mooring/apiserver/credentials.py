"""The credentials of a server, in a folder: made once, renewed in time.

ca.crt ca.key            the authority
server.crt server.key    the server's own certificate
sa.key                   signs the tokens of service accounts
NAME.crt NAME.key        client certificates: admin, scheduler, controller-manager, and the one by
                         which nodes know the server

A node has a folder of its own, with ca.crt, client.crt, client.key, serving.crt and serving.key.

All files are for their owner only, and are written at once or not at all. Whoever reads them while
they are renewed sees the old ones or the new ones; a key and certificate that do not belong
together, because the machine stopped between the two, are made anew.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mooring.api.timestamp import Timestamp
from mooring.apiserver import certificates
from mooring.apiserver.authentication.keys import SigningKey, SigningKeyError
from mooring.apiserver.authorization.access import MASTERS
from mooring.apiserver.certificates import CertificateError, Pair
from mooring.kit.extras import optional_imports

with optional_imports():
    from cryptography.hazmat.primitives import serialization

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700

ADMIN = "admin"
KUBELET_CLIENT = "apiserver-kubelet-client"  # by which nodes know the server
CLIENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (ADMIN, "kubernetes-admin", (MASTERS,)),
    ("scheduler", "system:kube-scheduler", ()),
    ("controller-manager", "system:kube-controller-manager", ()),
    (KUBELET_CLIENT, "kube-apiserver-kubelet-client", ("kubeadm:cluster-admins",)),
)


NODE_PREFIX, NODES = "system:node:", "system:nodes"


class CredentialsError(Exception):
    """Credentials that cannot be read or written; the text names the file."""


class Credentials(NamedTuple):
    """All that a server needs to be known and to know others."""

    authority: Pair
    server: Pair
    signing_key: SigningKey
    clients: dict[str, Pair]
    renewed: tuple[str, ...] = ()  # what was made or renewed just now


class NodeCredentials(NamedTuple):
    """All that a node needs to be known to the server, and to be one for it."""

    client: Pair  # system:node:NAME
    serving: Pair
    renewed: tuple[str, ...] = ()


class Folder:
    """The files of a server, or of a node."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ensure(
        self, now: Timestamp, *, names: Sequence[str] = (), addresses: Sequence[str] = ()
    ) -> Credentials:
        """Return the credentials, made or renewed where they must be."""
        self._make()
        renewed: list[str] = []
        authority = self._authority(now, renewed)
        server = partial(
            certificates.server_certificate, authority, now, names=names, addresses=addresses
        )
        wanted = frozenset((*names, *addresses))
        own = self._pair("server", authority, now, server, renewed, names=wanted)
        clients = {}
        for name, user, groups in CLIENTS:
            client = partial(certificates.client_certificate, authority, user, groups, now)
            clients[name] = self._pair(name, authority, now, client, renewed)
        return Credentials(authority, own, self._signing_key(renewed), clients, tuple(renewed))

    def ensure_node(
        self, authority: Pair, node: str, now: Timestamp, *, hosts: Sequence[str]
    ) -> NodeCredentials:
        """Return the credentials of a node, made or renewed where they must be, in this folder."""
        self._make()
        renewed: list[str] = []
        user = f"{NODE_PREFIX}{node}"
        write_privately(self.path / "ca.crt", authority.certificate)
        client = partial(certificates.client_certificate, authority, user, (NODES,), now)
        serving = partial(certificates.serving_certificate, authority, user, (NODES,), hosts, now)
        return NodeCredentials(
            self._pair("client", authority, now, client, renewed, user=user),
            self._pair(
                "serving", authority, now, serving, renewed, names=frozenset(hosts), user=user
            ),
            tuple(renewed),
        )

    def authority(self) -> Pair:
        """Return the authority that is here, or raise CredentialsError."""
        found = self._read_pair("ca")
        if found is None or not _belongs(found):
            raise CredentialsError(f"{self.path / 'ca.crt'}: there is no authority")
        return found

    def _make(self) -> None:
        try:
            self.path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise CredentialsError(f"{self.path}: {error.strerror}") from None

    def _authority(self, now: Timestamp, renewed: list[str]) -> Pair:
        """Return the authority. Its key never changes: all credentials out there hang on it."""
        found = self._read_pair("ca")
        if (
            found is not None
            and _belongs(found)
            and not certificates.is_due(found.certificate, now)
        ):
            return found
        key = self._read("ca.key")
        if key is None and (self.path / "ca.crt").exists():
            raise CredentialsError(f"{self.path / 'ca.key'}: missing, though there is a ca.crt")
        renewed.append("ca")
        try:
            made = certificates.authority_certificate(key or certificates.new_key(), now)
        except CertificateError as error:
            raise CredentialsError(f"{self.path / 'ca.key'}: {error}") from None
        return self._write_pair("ca", made)

    def _pair(
        self,
        name: str,
        authority: Pair,
        now: Timestamp,
        make: Callable[[], Pair],
        renewed: list[str],
        *,
        names: frozenset[str] = frozenset(),
        user: str = "",
    ) -> Pair:
        found = self._read_pair(name)
        if (
            found is not None
            and not certificates.is_due(found.certificate, now)
            and certificates.is_signed_by(found.certificate, authority.certificate)
            and _belongs(found)
            and names <= certificates.names_of(found.certificate)
            and user in ("", certificates.user_of(found.certificate))
        ):
            return found
        renewed.append(name)
        try:
            return self._write_pair(name, make())
        except CertificateError as error:
            raise CredentialsError(f"{self.path / f'{name}.crt'}: {error}") from None

    def _signing_key(self, renewed: list[str]) -> SigningKey:
        pem = self._read("sa.key")
        if pem is None:
            renewed.append("sa")
            pem = certificates.new_key()
            write_privately(self.path / "sa.key", pem)
        try:
            return SigningKey.from_pem(pem)
        except SigningKeyError as error:
            raise CredentialsError(f"{self.path / 'sa.key'}: {error}") from None

    def _read_pair(self, name: str) -> Pair | None:
        certificate, key = self._read(f"{name}.crt"), self._read(f"{name}.key")
        return None if certificate is None or key is None else Pair(certificate, key)

    def _write_pair(self, name: str, pair: Pair) -> Pair:
        write_privately(self.path / f"{name}.key", pair.key)
        write_privately(self.path / f"{name}.crt", pair.certificate)
        return pair

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CredentialsError(f"{self.path / name}: {error.strerror}") from None


def write_privately(path: Path, data: bytes) -> None:
    """Write a file for its owner only; it is there as a whole or not at all."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise CredentialsError(f"{path}: {error.strerror}") from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _belongs(pair: Pair) -> bool:
    """Return whether a key and a certificate belong together."""
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
        return certificates.public_key_of(pair.certificate) == key.public_key()
    except (ValueError, TypeError):
        return False
