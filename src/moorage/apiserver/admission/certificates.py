"""Admission of CertificateSigningRequests and ClusterTrustBundles.

CertificateApproval             approving or denying needs the verb `approve` on the signer
CertificateSigning              writing a certificate needs the verb `sign`
CertificateSubjectRestriction   nobody gets a client certificate for system:masters
ClusterTrustBundleAttest        writing a bundle of a signer needs the verb `attest`

The server records the requester in each request, and rejects invalid bytes.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from moorage.api.certificates import GROUP, CertificateSigningRequest, ClusterTrustBundle
from moorage.api.field_path import root
from moorage.apiserver.admission.node_restriction import AdmissionAttributes, Operation
from moorage.apiserver.auth.access import Allowed, Authorizer, ResourceAccess
from moorage.apiserver.auth.users import MASTERS, User
from moorage.apiserver.http.status import About, invalid
from moorage.kit.extras import optional_imports
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import invalid as invalid_value

with optional_imports():
    from cryptography import x509
    from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest as ParsedRequest

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_ABOUT = About("certificatesigningrequests", "CertificateSigningRequest", GROUP)
_NO_REQUEST = "PEM block type must be CERTIFICATE REQUEST"
_WRONG_SIGNATURE = "x509: the signature of the request is not valid"


def with_requester(new: Any, user: User) -> Any:
    """Return a request with its requester; other objects stay unchanged."""
    if not isinstance(new, CertificateSigningRequest):
        return new
    _parsed(new)
    extra = {key: tuple(values) for key, values in user.extra.items()}
    spec = replace(new.spec, username=user.name, uid=user.uid, groups=user.groups, extra=extra)
    return replace(new, spec=spec)


def _parsed(request: CertificateSigningRequest) -> ParsedRequest:
    """Return the request within the object, or raise 422."""
    try:
        found = x509.load_pem_x509_csr(base64.b64decode(request.spec.request or ""))
        fault = "" if found.is_signature_valid else _WRONG_SIGNATURE
    except (ValueError, binascii.Error):
        fault = _NO_REQUEST
    if fault:
        path = root("spec").child("request")
        faults = [invalid_value(path, request.spec.request or "", fault)]
        raise invalid(_ABOUT, request.metadata.name, faults)
    return found


def refuse_certificate_write(
    user: User, change: AdmissionAttributes, authorizer: Authorizer
) -> str | None:
    """Return why a user may not write the object, or None if they may or it has another kind."""
    if change.operation is Operation.DELETE:
        return None
    if isinstance(change.new, ClusterTrustBundle):
        return _refuse_bundle(user, change, authorizer)
    if not isinstance(change.new, CertificateSigningRequest):
        return None
    if change.operation is Operation.CREATE:
        return _refuse_subject(change.new)
    signer, part = change.old.spec.signer_name, change.target.subresource
    if part == "approval" and not _may(authorizer, user, "approve", signer):
        return f"user not permitted to approve requests with signerName {go_quote(signer)}"
    is_signed = change.new.status != change.old.status
    if part == "status" and is_signed and not _may(authorizer, user, "sign", signer):
        return f"user not permitted to sign requests with signerName {go_quote(signer)}"
    return None


def _refuse_subject(request: CertificateSigningRequest) -> str | None:
    if request.spec.signer_name != CLIENT_SIGNER:
        return None
    subject = _parsed(request).subject
    groups = {each.value for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)}
    if MASTERS not in groups:
        return None
    return f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"


def _refuse_bundle(user: User, change: AdmissionAttributes, authorizer: Authorizer) -> str | None:
    signer = change.new.spec.signer_name
    if not signer or (change.old is not None and change.old.spec == change.new.spec):
        return None
    if _may(authorizer, user, "attest", signer):
        return None
    return f"user not permitted to attest for signerName {go_quote(signer)}"


def _may(authorizer: Authorizer, user: User, verb: str, signer: str) -> bool:
    """Return whether a user has a verb on a signer, or on all signers of its domain."""
    every = f"{signer.partition('/')[0]}/*"
    return any(
        isinstance(
            authorizer.authorize(ResourceAccess(user, verb, GROUP, "signers", name=name)), Allowed
        )
        for name in (signer, every)
    )
