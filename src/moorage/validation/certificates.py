"""Strategies of CertificateSigningRequests and ClusterTrustBundles.

Whether the bytes of a request are one, and who may approve and sign it, is for admission.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from moorage.api import names
from moorage.api.certificates import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    ClusterTrustBundle,
    PodCertificateRequest,
)
from moorage.api.field_path import Path, root
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.validation.metadata import validate_metadata
from moorage.validation.strategy import Context, ObjectStrategy

SPEC, STATUS = root("spec"), root("status")
CONDITIONS = STATUS.child("conditions")
APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
DECISIONS = (APPROVED, DENIED)
LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
EXPIRATION_S_MIN = 600
STATUSES = ("False", "True", "Unknown")
USAGES = (
    *("any", "cert sign", "client auth", "code signing", "content commitment", "crl sign"),
    *("data encipherment", "decipher only", "digital signature", "email protection"),
    *("encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement"),
    *("key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime"),
    *("server auth", "signing", "timestamping"),
)
_SIGNER_FORM = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_SIGNER_DOMAIN = "should be a domain with at least two segments separated by dots"

Conditions = tuple[CertificateSigningRequestCondition, ...]


def _any_name(_: str) -> list[str]:
    return []


class CertificateSigningRequestStrategy(ObjectStrategy[CertificateSigningRequest]):
    """The strategy of CertificateSigningRequests: the request itself never changes."""

    namespaced = False
    qualified_finalizers = False
    keeps_metadata_with_status = False
    validate_name = staticmethod(_any_name)

    def prepare_for_update(
        self,
        new: CertificateSigningRequest,
        old: CertificateSigningRequest,
        context: Context,  # noqa: ARG002
    ) -> CertificateSigningRequest:
        """Keep the request and the decision on it."""
        return replace(new, spec=old.spec, status=old.status)

    def validate_fields(self, new: CertificateSigningRequest) -> ErrorList:
        """Validate usages, signer and lifetime, and the conditions."""
        spec, found = new.spec, ErrorList()
        path = SPEC.child("usages")
        if not spec.usages:
            found.append(required(path))
        for place, usage in enumerate(spec.usages):
            if usage not in USAGES:
                found.append(not_supported(path.index(place), usage, USAGES))
            if usage in spec.usages[:place]:
                found.append(duplicate(path.index(place), usage))
        if spec.signer_name == LEGACY_SIGNER:
            detail = "the legacy signerName is not allowed via this API version"
            found.append(invalid(SPEC.child("signerName"), spec.signer_name, detail))
        else:
            found += validate_signer(spec.signer_name, SPEC.child("signerName"))
        seconds = spec.expiration_seconds
        if seconds is not None and seconds < EXPIRATION_S_MIN:
            detail = "may not specify a duration less than 600 seconds (10 minutes)"
            found.append(invalid(SPEC.child("expirationSeconds"), seconds, detail))
        return found + _validate_conditions(new.status.conditions)

    def prepare_for_status_update(
        self, new: CertificateSigningRequest, old: CertificateSigningRequest, context: Context
    ) -> CertificateSigningRequest:
        """Keep the request; conditions without a time get the current one."""
        conditions = _timed(new.status.conditions, old.status.conditions, context)
        status = replace(new.status, conditions=conditions)
        return replace(new, spec=old.spec, status=status)

    def validate_status(
        self, new: CertificateSigningRequest, old: CertificateSigningRequest
    ) -> ErrorList:
        """Validate the conditions, and that the decision and a certificate stay."""
        found = self.validate_fields(new)
        found += _validate_kept(new.status.conditions, old.status.conditions)
        found += _validate_decision(new.status.conditions, old.status.conditions)
        before = old.status.certificate
        if before and new.status.certificate != before:
            detail = "updates may not modify existing certificate content"
            found.append(forbidden(STATUS.child("certificate"), detail))
        return found


class ApprovalStrategy(CertificateSigningRequestStrategy):
    """The strategy of the subresource `approval`: only the conditions change."""

    def prepare_for_update(
        self, new: CertificateSigningRequest, old: CertificateSigningRequest, context: Context
    ) -> CertificateSigningRequest:
        """Keep the request and the certificate."""
        conditions = _timed(new.status.conditions, old.status.conditions, context)
        return replace(new, spec=old.spec, status=replace(old.status, conditions=conditions))

    def validate_changes(
        self, new: CertificateSigningRequest, old: CertificateSigningRequest
    ) -> ErrorList:
        """Validate that no decision is taken back."""
        return _validate_kept(new.status.conditions, old.status.conditions)


def _timed(conditions: Conditions, old: Conditions, context: Context) -> Conditions:
    """Return conditions with times; one that has not changed keeps that of its transition."""
    known = {(each.type, each.status): each.last_transition_time for each in old}
    return tuple(
        replace(
            each,
            last_update_time=each.last_update_time or context.now,
            last_transition_time=each.last_transition_time
            or known.get((each.type, each.status))
            or context.now,
        )
        for each in conditions
    )


def _validate_conditions(conditions: Conditions) -> ErrorList:
    found: ErrorList = []
    seen: set[str] = set()
    for place, each in enumerate(conditions):
        path = CONDITIONS.index(place)
        if not each.type:
            found.append(required(path.child("type")))
        allowed = ("True",) if each.type in (*DECISIONS, FAILED) else STATUSES
        if not each.status:
            found.append(required(path.child("status")))
        elif each.status not in allowed:
            found.append(not_supported(path.child("status"), each.status, allowed))
        if each.type in DECISIONS and seen & (set(DECISIONS) - {each.type}):
            detail = "Approved and Denied conditions are mutually exclusive"
            found.append(invalid(CONDITIONS, each.type, detail))
        if each.type in seen:
            found.append(duplicate(path.child("type"), each.type))
        seen.add(each.type)
    return found


def _of_type(conditions: Iterable[CertificateSigningRequestCondition], type_: str) -> Conditions:
    return tuple(each for each in conditions if each.type == type_)


def _validate_kept(new: Conditions, old: Conditions) -> ErrorList:
    return [
        forbidden(CONDITIONS, f"updates may not remove a condition of type {go_quote(each)}")
        for each in (*DECISIONS, FAILED)
        if len(_of_type(new, each)) < len(_of_type(old, each))
    ]


def _validate_decision(new: Conditions, old: Conditions) -> ErrorList:
    """Validate that nobody decides who only reports."""
    found: ErrorList = []
    for each in DECISIONS:
        after, before = _of_type(new, each), _of_type(old, each)
        if len(after) > len(before):
            detail = f"updates may not add a condition of type {go_quote(each)}"
            found.append(forbidden(CONDITIONS, detail))
        elif len(after) == len(before) and after != before:
            detail = f"updates may not modify a condition of type {go_quote(each)}"
            found.append(forbidden(CONDITIONS, detail))
    return found


def validate_signer(name: str, path: Path) -> ErrorList:
    """Validate the name of a signer: a domain and a path."""
    if not name:
        return [required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        return [invalid(path, name, _SIGNER_FORM)]
    found: ErrorList = []
    for part, messages_of in ((domain, names.dns1123_label), (rest, names.dns1123_subdomain)):
        pieces = part.split(".") if part is domain else [part]
        faults = next(((piece, messages_of(piece)) for piece in pieces if messages_of(piece)), None)
        if faults is not None:
            piece, messages = faults
            label = f"validating label {go_quote(piece)}: "
            found += [invalid(path, part, f"{label}{message}") for message in messages]
    if "." not in domain:
        found.append(invalid(path, domain, _SIGNER_DOMAIN))
    return found


# --- ClusterTrustBundles --------------------------------------------------------------------------


class ClusterTrustBundleStrategy(ObjectStrategy[ClusterTrustBundle]):
    """The strategy of ClusterTrustBundles, which have the name of their signer in their own."""

    namespaced = False
    qualified_finalizers = False

    def validate_metadata(self, new: ClusterTrustBundle) -> ErrorList:
        """Validate the metadata; the name begins with that of the signer."""
        return validate_metadata(
            new.metadata,
            namespaced=False,
            validate_name=partial(_bundle_name, new.spec.signer_name),
            qualified_finalizers=False,
        )

    def validate_fields(self, new: ClusterTrustBundle) -> ErrorList:
        """Validate the signer, and that there is a certificate."""
        path = SPEC.child("signerName")
        found = validate_signer(new.spec.signer_name, path) if new.spec.signer_name else []
        if "-----BEGIN CERTIFICATE-----" not in new.spec.trust_bundle:
            detail = "at least one trust anchor must be provided"
            found.append(invalid(SPEC.child("trustBundle"), "<value omitted>", detail))
        return found

    def validate_changes(self, new: ClusterTrustBundle, old: ClusterTrustBundle) -> ErrorList:
        """Validate that the signer stays."""
        if new.spec.signer_name == old.spec.signer_name:
            return []
        return [invalid(SPEC.child("signerName"), new.spec.signer_name, "field is immutable")]


def _bundle_name(signer: str, name: str) -> list[str]:
    if not signer and ":" in name:
        return ['ClusterTrustBundle without signer name must not have ":" in its name']
    prefix = signer.replace("/", ":") + ":" if signer else ""
    if not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return names.dns1123_subdomain(name.removeprefix(prefix))


class PodCertificateRequestStrategy(ObjectStrategy[PodCertificateRequest]):
    """The strategy of PodCertificateRequests: the request itself never changes."""

    qualified_finalizers = False

    def validate_fields(self, new: PodCertificateRequest) -> ErrorList:
        """Validate the signer."""
        return validate_signer(new.spec.signer_name, SPEC.child("signerName"))

    def validate_changes(self, new: PodCertificateRequest, old: PodCertificateRequest) -> ErrorList:
        """Validate that the request stays."""
        return [] if new.spec == old.spec else [invalid(SPEC, "<value omitted>", _IMMUTABLE)]


_IMMUTABLE = "field is immutable"
