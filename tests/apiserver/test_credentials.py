from __future__ import annotations

import base64
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth import authenticator, certificates
from moorage.apiserver.auth.certificates import Pair
from moorage.apiserver.auth.credentials import (
    ADMIN,
    KUBELET_CLIENT,
    Credentials,
    CredentialsFolder,
    kubeconfig,
)
from moorage.apiserver.auth.users import CREDENTIAL_ID
from moorage.apiserver.errors import CertificateError, CredentialsError

# TLS itself looks at the clock.
NOW = Timestamp(datetime.now(UTC).replace(microsecond=0))


def later(**span: int) -> Timestamp:
    return Timestamp(NOW.instant + timedelta(**span))


@pytest.fixture(scope="module")
def authority() -> Pair:
    return certificates.authority_certificate(certificates.new_key(), NOW)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    return CredentialsFolder(tmp_path_factory.mktemp("pki")).ensure(NOW)


def der(pem: bytes) -> bytes:
    certificate = x509.load_pem_x509_certificate(pem)
    return certificate.public_bytes(serialization.Encoding.DER)


# --- certificates ---------------------------------------------------------------------------------


def test_a_client_certificate_names_the_user_and_its_groups(authority: Pair) -> None:
    pair = certificates.client_certificate(authority, "ann", ("dev", "ops"), NOW)
    user = authenticator.certificate_user(der(pair.certificate))
    assert user is not None
    assert (user.name, user.groups) == ("ann", ("dev", "ops"))
    assert user.extra[CREDENTIAL_ID][0].startswith("X509SHA256=")


def test_a_server_certificate_makes_nobody_a_user(authority: Pair) -> None:
    pair = certificates.server_certificate(authority, NOW)
    assert authenticator.certificate_user(der(pair.certificate)) is None
    assert authenticator.certificate_user(der(authority.certificate)) is None


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x30\x82\x01\x00", b"x" * 100_000])
def test_what_is_no_certificate_makes_nobody_a_user(data: bytes) -> None:
    assert authenticator.certificate_user(data) is None


def test_a_server_is_known_by_loopback_and_further_names(authority: Pair) -> None:
    pair = certificates.server_certificate(
        authority, NOW, names=("host.example",), addresses=("192.0.2.1",)
    )
    assert certificates.names_of(pair.certificate) >= {
        "localhost", "127.0.0.1", "::1", "host.example", "192.0.2.1",
    }  # fmt: skip
    with pytest.raises(CertificateError, match="not an IP address"):
        certificates.server_certificate(authority, NOW, addresses=("host",))


@pytest.mark.parametrize("user", ["", "x" * 65])
def test_a_name_must_fit_into_a_certificate(authority: Pair, user: str) -> None:
    with pytest.raises(CertificateError, match="1 to 64 bytes"):
        certificates.client_certificate(authority, user, (), NOW)


def test_no_certificate_outlives_its_authority(authority: Pair) -> None:
    pair = certificates.client_certificate(authority, "x", (), later(days=3600))
    read = x509.load_pem_x509_certificate
    end = read(pair.certificate).not_valid_after_utc
    assert end == read(authority.certificate).not_valid_after_utc


# --- the folder -----------------------------------------------------------------------------------


def test_files_are_for_their_owner_only_and_no_drafts_stay(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "pki"
    CredentialsFolder(folder).ensure(NOW)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert not [file.name for file in files if file.name.startswith(".")]


def test_an_authority_is_renewed_under_the_name_that_it_has(tmp_path: Path) -> None:
    key = certificates.new_key()
    old = certificates.authority_certificate(key, NOW, name="another-ca")
    for name, data in (("ca.crt", old.certificate), ("ca.key", key)):
        (tmp_path / name).write_bytes(data)
    held = certificates.client_certificate(old, "ann", (), NOW)
    assert CredentialsFolder(tmp_path).ensure(NOW).authority == old
    renewed = CredentialsFolder(tmp_path).ensure(later(days=3600)).authority
    assert renewed != old
    assert certificates.user_of(renewed.certificate) == "another-ca"
    assert certificates.is_signed_by(held.certificate, renewed.certificate)


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    first = CredentialsFolder(tmp_path).ensure(NOW)
    clients = ("admin", "scheduler", "controller-manager", KUBELET_CLIENT)
    assert first.renewed == ("ca", "front-proxy-ca", "server", *clients, "sa")
    again = CredentialsFolder(tmp_path).ensure(later(days=100))
    assert again.renewed == ()
    assert (again.server, again.clients) == (first.server, first.clients)
    assert again.signing_key.public.id == first.signing_key.public.id


def test_what_expires_soon_is_renewed_by_the_same_authority(tmp_path: Path) -> None:
    first = CredentialsFolder(tmp_path).ensure(NOW)
    renewed = CredentialsFolder(tmp_path).ensure(later(days=310))
    assert renewed.renewed == ("server", "admin", "scheduler", "controller-manager", KUBELET_CLIENT)
    assert renewed.authority == first.authority


def test_an_authority_is_renewed_with_its_key(tmp_path: Path) -> None:
    first = CredentialsFolder(tmp_path).ensure(NOW)
    renewed = CredentialsFolder(tmp_path).ensure(later(days=3640))
    assert "ca" in renewed.renewed
    assert renewed.authority.key == first.authority.key
    old = first.clients[ADMIN].certificate
    assert certificates.is_signed_by(old, renewed.authority.certificate)


def test_a_new_name_makes_a_new_server_certificate(tmp_path: Path) -> None:
    CredentialsFolder(tmp_path).ensure(NOW)
    more = CredentialsFolder(tmp_path).ensure(NOW, names=("host.example",))
    assert more.renewed == ("server",)
    assert CredentialsFolder(tmp_path).ensure(NOW, names=("host.example",)).renewed == ()


def test_a_key_without_its_certificate_is_made_good(tmp_path: Path) -> None:
    first = CredentialsFolder(tmp_path).ensure(NOW)
    (tmp_path / "server.key").write_bytes(certificates.new_key())
    (tmp_path / "admin.crt").write_bytes(b"half a cert")
    (tmp_path / "ca.crt").unlink()
    again = CredentialsFolder(tmp_path).ensure(NOW)
    assert again.renewed == ("ca", "server", "admin")
    assert again.authority.key == first.authority.key


@pytest.mark.parametrize(
    ("name", "part"), [("ca.key", "not a private key"), ("sa.key", "not a private key")]
)
def test_a_key_that_cannot_be_read_is_never_replaced(tmp_path: Path, name: str, part: str) -> None:
    CredentialsFolder(tmp_path).ensure(NOW)
    (tmp_path / name).write_bytes(b"nonsense")
    with pytest.raises(CredentialsError, match=part) as caught:
        CredentialsFolder(tmp_path).ensure(NOW)
    assert name in str(caught.value)
    assert (tmp_path / name).read_bytes() == b"nonsense"


def test_a_lost_key_of_the_authority_is_an_error(tmp_path: Path) -> None:
    CredentialsFolder(tmp_path).ensure(NOW)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(CredentialsError, match=r"ca\.key: missing"):
        CredentialsFolder(tmp_path).ensure(NOW)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CredentialsError, match="file"):
        CredentialsFolder(tmp_path / "file" / "pki").ensure(NOW)


# --- TLS ------------------------------------------------------------------------------------------


def context_with(
    pair: Pair | None, authority: bytes, folder: Path, *, server: bool
) -> ssl.SSLContext:
    purpose = ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT
    context = ssl.SSLContext(purpose)
    context.load_verify_locations(cadata=authority.decode())
    if server:
        context.verify_mode = ssl.CERT_OPTIONAL
    if pair is not None:
        file = folder / ("server.pem" if server else "client.pem")
        file.write_bytes(pair.key + pair.certificate)
        context.load_cert_chain(file)
    return context


def peer_of(made: Credentials, client: Pair | None, folder: Path, host: str) -> bytes | None:
    """Return the certificate that a server sees of a client, after a handshake in memory."""
    ends = [ssl.MemoryBIO() for _ in range(4)]
    authority = made.authority.certificate
    server = context_with(made.server, authority, folder, server=True).wrap_bio(
        ends[0], ends[1], server_side=True
    )
    asking = context_with(client, authority, folder, server=False).wrap_bio(
        ends[2], ends[3], server_hostname=host
    )
    done: set[object] = set()
    for _ in range(10):
        for side in (asking, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
            ends[0].write(ends[3].read())
            ends[2].write(ends[1].read())
    assert done == {asking, server}
    return server.getpeercert(binary_form=True)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_a_client_and_a_server_know_each_other_over_tls(
    made: Credentials, tmp_path: Path, host: str
) -> None:
    peer = peer_of(made, made.clients[ADMIN], tmp_path, host)
    assert peer is not None
    user = authenticator.certificate_user(peer)
    assert user is not None
    assert (user.name, user.groups) == ("kubernetes-admin", ("system:masters",))


def test_a_client_without_a_certificate_is_let_in_as_nobody(
    made: Credentials, tmp_path: Path
) -> None:
    assert peer_of(made, None, tmp_path, "localhost") is None


def test_a_certificate_of_another_authority_is_refused(made: Credentials, tmp_path: Path) -> None:
    foreign = certificates.authority_certificate(certificates.new_key(), NOW)
    pair = certificates.client_certificate(foreign, "kubernetes-admin", ("system:masters",), NOW)
    with pytest.raises(ssl.SSLError):
        peer_of(made, pair, tmp_path, "localhost")


def test_an_expired_certificate_is_refused(made: Credentials, tmp_path: Path) -> None:
    long_ago = later(days=-400)
    pair = certificates.client_certificate(made.authority, "x", (), long_ago)
    with pytest.raises(ssl.SSLError):
        peer_of(made, pair, tmp_path, "localhost")


# --- kubeconfig -----------------------------------------------------------------------------------


def test_a_kubeconfig_has_the_server_and_the_credentials(made: Credentials) -> None:
    pair = made.clients[ADMIN]
    text = kubeconfig("https://127.0.0.1:6443", made.authority.certificate, "admin", pair)
    tree = yaml.safe_load(text)
    assert tree["current-context"] == tree["contexts"][0]["name"] == "admin@moorage"
    assert tree["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    user = tree["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == pair.certificate
    assert base64.b64decode(user["client-key-data"]) == pair.key
    token = kubeconfig("https://x", made.authority.certificate, "bot", "the-token")
    assert yaml.safe_load(token)["users"][0]["user"] == {"token": "the-token"}
