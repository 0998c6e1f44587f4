"""The credentials of a server and of nodes, in folders: made once, renewed before they expire.

ca.crt ca.key            the certificate authority
front-proxy-ca.crt .key  the authority of proxies, which pass on the requests of others
server.crt server.key    the server's own certificate
sa.key                   signs service account tokens
NAME.crt NAME.key        client certificates: admin, scheduler, controller-manager, and the one that
                         the server shows to nodes

A node has a folder of its own, with ca.crt, client.crt, client.key, serving.crt, serving.key and a
kubeconfig. A server without TLS has a token for its administrator instead.

All files are for their owner only, and are replaced atomically. A reader sees the old files or the
new ones; a key and certificate that do not match, because the machine stopped between the two
writes, are made anew.
"""

from __future__ import annotations

import base64
import secrets
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth import certificates
from moorage.apiserver.auth.certificates import Pair
from moorage.apiserver.auth.service_account_tokens import SigningKey
from moorage.apiserver.auth.users import MASTERS, NODE_PREFIX, NODES
from moorage.apiserver.errors import CertificateError, CredentialsError, SigningKeyError
from moorage.kit.atomic_file import PRIVATE_FOLDER, read_bounded, replace_file, replace_files
from moorage.kit.extras import optional_imports

with optional_imports():
    from cryptography.hazmat.primitives import serialization

FILE_BYTES_MAX = 64 * 1024

AUTHORITY, FRONT_PROXY = "ca", "front-proxy-ca"
ADMIN = "admin"
KUBELET_CLIENT = "apiserver-kubelet-client"  # the server's certificate for connections to nodes
CLIENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (ADMIN, "kubernetes-admin", (MASTERS,)),
    ("scheduler", "system:kube-scheduler", ()),
    ("controller-manager", "system:kube-controller-manager", ()),
    (KUBELET_CLIENT, "kube-apiserver-kubelet-client", ("kubeadm:cluster-admins",)),
)
TOKEN_FILE = "admin-token"  # noqa: S105  # a file name
CLUSTER = "moorage"


class Credentials(NamedTuple):
    """The credentials of a server."""

    authority: Pair
    server: Pair
    signing_key: SigningKey
    clients: dict[str, Pair]
    renewed: tuple[str, ...] = ()  # made or renewed by this call
    front_proxy: Pair | None = None  # of those who pass requests of others on

    def client_certificate(self, user: str) -> bytes:
        """Return the certificate of a user, as TLS would hand it over."""
        return ssl.PEM_cert_to_DER_cert(self.clients[user].certificate.decode())


class NodeCredentials(NamedTuple):
    """The credentials of a node, as a client and as a server."""

    client: Pair  # system:node:NAME
    serving: Pair
    renewed: tuple[str, ...] = ()


class CredentialsFolder:
    """The credential files of a server or of a node."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ensure(
        self, now: Timestamp, *, names: Sequence[str] = (), addresses: Sequence[str] = ()
    ) -> Credentials:
        """Return the credentials; make or renew those that are missing or due."""
        self._make()
        renewed: list[str] = []
        authority = self._authority(AUTHORITY, now, renewed)
        front_proxy = self._authority(FRONT_PROXY, now, renewed)
        server = partial(
            certificates.server_certificate, authority, now, names=names, addresses=addresses
        )
        wanted = frozenset((*names, *addresses))
        own = self._pair("server", authority, now, server, renewed, names=wanted)
        clients = {}
        for name, user, groups in CLIENTS:
            client = partial(certificates.client_certificate, authority, user, groups, now)
            clients[name] = self._pair(name, authority, now, client, renewed)
        key = self._signing_key(renewed)
        return Credentials(authority, own, key, clients, tuple(renewed), front_proxy)

    def ensure_node(
        self, authority: Pair, node: str, now: Timestamp, *, hosts: Sequence[str]
    ) -> NodeCredentials:
        """Return the credentials of a node; make or renew those that are missing or due."""
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
        """Return the certificate authority in this folder, or raise CredentialsError."""
        found = self._read_pair("ca")
        if found is None or not _is_match(found):
            raise CredentialsError(f"{self.path / 'ca.crt'}: there is no authority")
        return found

    def _make(self) -> None:
        try:
            self.path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise CredentialsError(f"{self.path}: {error.strerror}") from None

    def _authority(self, name: str, now: Timestamp, renewed: list[str]) -> Pair:
        """Return the authority; all issued credentials depend on its key and name, which stay."""
        found = self._read_pair(name)
        if (
            found is not None
            and _is_match(found)
            and not certificates.is_due(found.certificate, now)
        ):
            return found
        key = self._read(f"{name}.key")
        if key is None and (self.path / f"{name}.crt").exists():
            path = self.path / f"{name}.key"
            raise CredentialsError(f"{path}: missing, though there is a {name}.crt")
        renewed.append(name)
        try:
            own = certificates.AUTHORITY_NAME if found is None else _name_of(found)
            made = certificates.authority_certificate(key or certificates.new_key(), now, name=own)
        except CertificateError as error:
            raise CredentialsError(f"{self.path / f'{name}.key'}: {error}") from None
        return self._write_pair(name, made)

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
            and _is_match(found)
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
        files = {self.path / f"{name}.key": pair.key, self.path / f"{name}.crt": pair.certificate}
        try:
            replace_files(files)  # a key without its certificate would be of no use
        except OSError as error:
            raise CredentialsError(f"{self.path / name}: {error.strerror}") from None
        return pair

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CredentialsError(f"{self.path / name}: {error.strerror}") from None


def write_privately(path: Path, data: bytes) -> None:
    """Replace a file that only its owner can read, or raise CredentialsError.

    A file that has the content already is left alone, so that a restart needs no space on the disk.
    """
    try:
        if not _has_content(path, data):
            replace_file(path, data)
    except OSError as error:
        raise CredentialsError(f"{path}: {error.strerror}") from None


def self_signed_files(folder: Path, hosts: Sequence[str], now: Timestamp) -> tuple[Path, Path]:
    """Return the files of a certificate for hosts and of its key, made anew if they are not usable.

    Who signed it is in the certificate's file, and nowhere else. Raises CredentialsError.
    """
    files = folder / "tls.crt", folder / "tls.key"
    with suppress(OSError, ValueError):
        kept = Pair(*(read_bounded(path, FILE_BYTES_MAX) for path in files))
        is_for_us = certificates.names_of(kept.certificate) >= frozenset(hosts)
        if is_for_us and _is_match(kept) and not certificates.is_due(kept.certificate, now):
            return files
    authority = certificates.authority_certificate(certificates.new_key(), now)
    made = certificates.serving_certificate(authority, "moorage", (), hosts, now)
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as error:
        raise CredentialsError(f"{folder}: {error.strerror}") from None
    for path, data in zip(files, (made.certificate + authority.certificate, made.key), strict=True):
        write_privately(path, data)
    return files


def _has_content(path: Path, data: bytes) -> bool:
    try:
        return read_bounded(path, len(data)) == data
    except (OSError, ValueError):
        return False


def _name_of(authority: Pair) -> str:
    """Return the name of an authority; the usual one for what is no certificate."""
    try:
        return certificates.user_of(authority.certificate) or certificates.AUTHORITY_NAME
    except ValueError:
        return certificates.AUTHORITY_NAME


def _is_match(pair: Pair) -> bool:
    """Return whether a key and a certificate match."""
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
        return certificates.public_key_of(pair.certificate) == key.public_key()
    except (ValueError, TypeError):
        return False


def admin_token(data_dir: Path) -> str:
    """Return the administrator's token in a folder, made if there is none."""
    path = data_dir / TOKEN_FILE
    if not path.exists():
        write_privately(path, f"{secrets.token_urlsafe(32)}\n".encode())
    return path.read_text().strip()


# --- nodes and kubeconfig files -------------------------------------------------------------------


class NodeFolder(NamedTuple):
    """The files of a node."""

    kubeconfig: Path
    certificate: Path
    key: Path
    authority: Path
    renewed: tuple[str, ...] = ()


def write_node_folder(
    folder: Path, *, node: str, hosts: Sequence[str], server: str, pki: Path, now: Timestamp
) -> NodeFolder:
    """Write the credentials of a node that are missing or due, or raise CredentialsError.

    `hosts` are the names and addresses of its endpoint, `pki` is the server's credentials folder.
    """
    authority = CredentialsFolder(pki).authority()
    made = CredentialsFolder(folder).ensure_node(authority, node, now, hosts=hosts)
    text = kubeconfig(server, authority.certificate, f"{NODE_PREFIX}{node}", made.client)
    write_privately(folder / "kubeconfig", text.encode())
    return NodeFolder(
        folder / "kubeconfig",
        folder / "serving.crt",
        folder / "serving.key",
        folder / "ca.crt",
        made.renewed,
    )


def kubeconfig(
    server: str,
    authority: bytes | None,
    user: str,
    credentials: Pair | str,
    *,
    namespace: str = "default",
) -> str:
    """Return the text of a kubeconfig with a client certificate, or with a token."""
    context = f"{user}@{CLUSTER}"
    cluster = {"server": server}
    if authority is not None:
        cluster["certificate-authority-data"] = _text(authority)
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": user, "user": _user(credentials)}],
        "contexts": [
            {
                "name": context,
                "context": {"cluster": CLUSTER, "user": user, "namespace": namespace},
            }
        ],
        "current-context": context,
    }
    text: str = yaml.safe_dump(tree, sort_keys=False)
    return text


def _user(credentials: Pair | str) -> dict[str, Any]:
    if isinstance(credentials, str):
        return {"token": credentials} if credentials else {}
    return {
        "client-certificate-data": _text(credentials.certificate),
        "client-key-data": _text(credentials.key),
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
