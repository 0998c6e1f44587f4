"""Rules for projected volumes: several sources in one folder, in which no path comes twice."""

from __future__ import annotations

from collections.abc import Callable

from mooring.api import names
from mooring.api.codec import decode_tree
from mooring.api.fieldpath import Path
from mooring.api.meta import LabelSelector
from mooring.api.names import byte_length
from mooring.validation.checks import each_invalid
from mooring.validation.errors import (
    Errors,
    forbidden,
    invalid,
    not_supported,
    quoted,
    required,
    too_long,
)
from mooring.validation.labelselectors import check_label_selector
from mooring.validation.pod.downward import check_volume_file
from mooring.validation.pod.field_rules import Tree, given, local_path

TOKEN_LIFETIME_S_MIN = 600
TOKEN_LIFETIME_S_MAX = 2**32
CERTIFICATE_LIFETIME_S_MIN = 3600
CERTIFICATE_LIFETIME_S_MAX = 91 * 24 * 3600
OWN_CERTIFICATE_LIFETIME_S_MAX = 24 * 3600
KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")

_TWICE = "conflicting duplicate paths"
_SIGNER_FORM = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_DOMAIN = "should be a domain with at least two segments separated by dots"
_NO_PATH = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
_SIGNER_PATH_MAX = names.SUBDOMAIN_MAX + names.LABEL_MAX + 1
_SIGNER_MAX = names.SUBDOMAIN_MAX + _SIGNER_PATH_MAX + 1

KeyCheck = Callable[[Tree, Path], Errors]


class _Paths:
    """The paths that the sources of one volume have taken so far."""

    def __init__(self, volume: Path) -> None:
        self._volume = volume
        self._taken: set[str] = set()

    def take(self, path: str, shown: str) -> Errors:
        """Take a path; Kubernetes says of the whole volume that one comes twice."""
        if path in self._taken:
            return [invalid(self._volume, shown, _TWICE)]
        self._taken.add(path)
        return []


def check_projected(volume: Tree, path: Path, check_key: KeyCheck) -> Errors:
    """Check all sources of a volume."""
    paths = _Paths(path)
    found: Errors = []
    for position, source in enumerate(volume.get("sources", ())):
        place = path.child("sources").index(position)
        for name in ("secret", "configMap"):
            if name in source:
                found += _check_object(source[name], place.child(name), paths, check_key)
        if "downwardAPI" in source:
            found += _check_downward(source["downwardAPI"], place.child("downwardAPI"), paths)
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            found += _check_token(token, place.child("serviceAccountToken"), path)
        if "clusterTrustBundle" in source:
            bundle = source["clusterTrustBundle"]
            found += _check_bundle(bundle, place.child("clusterTrustBundle"), paths)
        if "podCertificate" in source:
            certificate = source["podCertificate"]
            found += _check_certificate(certificate, place.child("podCertificate"), paths)
        if len(source) > 1:
            found.append(forbidden(place, "may not specify more than 1 volume type per source"))
    return found


def _check_object(source: Tree, path: Path, paths: _Paths, check_key: KeyCheck) -> Errors:
    found = given(source, ("name",), path)
    for position, item in enumerate(source.get("items", ())):
        found += check_key(item, path.child("items").index(position))
        if item.get("path"):
            found += paths.take(item["path"], source.get("name", ""))
    return found


def _check_downward(source: Tree, path: Path, paths: _Paths) -> Errors:
    found: Errors = []
    for file in source.get("items", ()):
        found += check_volume_file(file, path)
        if file.get("path"):
            found += paths.take(file["path"], file["path"])
    return found


def _check_token(source: Tree, path: Path, volume: Path) -> Errors:
    """Check a token; Kubernetes names its path as if it were one of the volume."""
    place = path.child("expirationSeconds")
    lifetime = source.get("expirationSeconds")
    found: Errors = []
    if lifetime is None:
        found.append(required(place))
    elif lifetime < TOKEN_LIFETIME_S_MIN:
        detail = "may not specify a duration less than 10 minutes"
        found.append(invalid(place, lifetime, detail))
    elif lifetime > TOKEN_LIFETIME_S_MAX:
        detail = "may not specify a duration larger than 2^32 seconds"
        found.append(invalid(place, lifetime, detail))
    found += given(source, ("path",), volume)
    return found + local_path(source.get("path", ""), volume.child("path"))


# --- trust bundles --------------------------------------------------------------------------------


def _check_bundle(source: Tree, path: Path, paths: _Paths) -> Errors:
    name, signer, target = source.get("name"), source.get("signerName"), source.get("path", "")
    found: Errors = []
    if name is not None and signer is not None:
        found.append(invalid(path, source, "only one of name and signerName may be used"))
    elif name is not None:
        found += _check_bundle_name(name, path.child("name"))
        if "labelSelector" in source:
            detail = "labelSelector must be unset if name is specified"
            found.append(invalid(path.child("labelSelector"), source["labelSelector"], detail))
    elif signer is not None:
        if not signer:
            found.append(required(path.child("signerName"), "must be a valid signer name"))
        found += check_signer(signer, path.child("signerName"))
        if "labelSelector" in source:
            selector = decode_tree(source["labelSelector"], LabelSelector).value
            found += check_label_selector(selector, path.child("labelSelector"))
    else:
        found.append(required(path, "either name or signerName must be specified"))
    found += given(source, ("path",), path)
    found += local_path(target, path.child("path"))
    return found + paths.take(target, target)


def _check_bundle_name(name: str, path: Path) -> Errors:
    """Check the name of a bundle, which begins with the signer's if it has one."""
    found = [] if name else [required(path, "must be a valid object name")]
    rest = name.rpartition(":")[2]
    messages = names.dns1123_subdomain(rest)
    return found + each_invalid(
        path, name, (f"not a valid clustertrustbundlename: {message}" for message in messages)
    )


def check_signer(name: str, path: Path) -> Errors:
    """Check the name of a signer: a domain and a path."""
    if not name:
        return [required(path)]
    domain, _, rest = name.partition("/")
    if name.count("/") != 1:
        return [invalid(path, name, _SIGNER_FORM)]
    found: Errors = []
    if byte_length(domain) > names.SUBDOMAIN_MAX:
        found.append(too_long(path, names.SUBDOMAIN_MAX))
    found += _first_bad(domain, names.dns1123_label, path)
    if "." not in domain:
        found.append(invalid(path, domain, _DOMAIN))
    found += _first_bad(rest, names.dns1123_subdomain, path)
    if byte_length(name) > _SIGNER_MAX:
        found.append(too_long(path, _SIGNER_MAX))
    return found


def _first_bad(text: str, check: Callable[[str], list[str]], path: Path) -> Errors:
    """Return what is wrong with the first part between dots in which something is."""
    for part in text.split("."):
        messages = [f"validating label {quoted(part)}: {message}" for message in check(part)]
        if messages:
            return each_invalid(path, text, messages)
    return []


# --- certificates ---------------------------------------------------------------------------------


def _check_certificate(source: Tree, path: Path, paths: _Paths) -> Errors:
    signer = source.get("signerName", "")
    found = check_signer(signer, path.child("signerName"))
    found += _check_user_annotations(source.get("userAnnotations", {}), path)
    key_type = source.get("keyType", "")
    if key_type not in KEY_TYPES:
        found.append(not_supported(path.child("keyType"), key_type, KEY_TYPES))
    found += _check_lifetime(source, signer, path.child("maxExpirationSeconds"))
    targets = ("credentialBundlePath", "keyPath", "certificateChainPath")
    for name in targets:
        if source.get(name):
            found += local_path(source[name], path.child(name))
            found += paths.take(source[name], source[name])
    if not any(source.get(name) for name in targets):
        found.append(required(path, _NO_PATH))
    return found


def _check_user_annotations(annotations: Tree, path: Path) -> Errors:
    place = path.child("userAnnotations")
    found: Errors = []
    for key in annotations:
        written = key.lower()  # Kubernetes checks and shows keys in lower case.
        if not key:
            found.append(required(place))
        elif messages := names.label_name(written):
            found += each_invalid(place, written, messages)
        elif "/" not in key:
            detail = 'must be a domain-prefixed key (such as "acme.io/foo")'
            found.append(invalid(place, written, detail))
    return found


def _check_lifetime(source: Tree, signer: str, path: Path) -> Errors:
    lifetime = source.get("maxExpirationSeconds")
    if lifetime is None:
        return []
    if lifetime < CERTIFICATE_LIFETIME_S_MIN:
        detail = f"if provided, maxExpirationSeconds must be >= {CERTIFICATE_LIFETIME_S_MIN}"
        return [invalid(path, lifetime, detail)]
    domain = signer.partition("/")[0]
    is_own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    longest = OWN_CERTIFICATE_LIFETIME_S_MAX if is_own else CERTIFICATE_LIFETIME_S_MAX
    if lifetime > longest:
        detail = f"if provided, maxExpirationSeconds must be <= {longest}"
        return [invalid(path, lifetime, detail)]
    return []
