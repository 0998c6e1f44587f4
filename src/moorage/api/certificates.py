"""certificates.k8s.io/v1: requests for certificates, and bundles of those that are trusted."""

from __future__ import annotations

from msgspec import field

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Condition, ObjectMeta
from moorage.api.structs import Base64, Closed, Int32, always
from moorage.api.timestamp import Timestamp

GROUP = "certificates.k8s.io"
API_VERSION = f"{GROUP}/v1"


class CertificateSigningRequestSpec(Closed, frozen=True, gc=False):
    """The request, who signs it, and who made it."""

    request: Base64 | None = always(None)
    signer_name: str = always("")
    expiration_seconds: Int32 | None = None
    usages: tuple[str, ...] = ()
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


class CertificateSigningRequestCondition(Closed, frozen=True, gc=False):
    """Whether a request is approved, denied or failed."""

    type: str = always("")
    status: str = always("")
    reason: str = ""
    message: str = ""
    last_update_time: Timestamp | None = always(None)
    last_transition_time: Timestamp | None = always(None)


class CertificateSigningRequestStatus(Closed, frozen=True, gc=False):
    """The decision on a request, and the certificate."""

    conditions: tuple[CertificateSigningRequestCondition, ...] = ()
    certificate: Base64 = ""


class CertificateSigningRequest(Closed, frozen=True, gc=False):
    """A request for a certificate."""

    api_version: str = always(API_VERSION)
    kind: str = always("CertificateSigningRequest")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: CertificateSigningRequestSpec = always(CertificateSigningRequestSpec())
    status: CertificateSigningRequestStatus = always(CertificateSigningRequestStatus())


class ClusterTrustBundleSpec(Closed, frozen=True, gc=False):
    """The certificates, and the signer that they belong to."""

    signer_name: str = ""
    trust_bundle: str = always("")


class ClusterTrustBundle(Closed, frozen=True, gc=False):
    """Certificates that are trusted in the whole cluster."""

    api_version: str = always(API_VERSION)
    kind: str = always("ClusterTrustBundle")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ClusterTrustBundleSpec = always(ClusterTrustBundleSpec())


class PodCertificateRequestSpec(Closed, frozen=True, gc=False):
    """The pod that asks, and its key."""

    signer_name: str = always("")
    pod_name: str = always("")
    pod_uid: str = always("", name="podUID")
    service_account_name: str = always("")
    service_account_uid: str = always("", name="serviceAccountUID")
    node_name: str = always("")
    node_uid: str = always("", name="nodeUID")
    max_expiration_seconds: Int32 | None = None
    stub_pkcs10_request: Base64 | None = always(None, name="stubPKCS10Request")
    unverified_user_annotations: dict[str, str] = field(default_factory=dict)


class PodCertificateRequestStatus(Closed, frozen=True, gc=False):
    """The certificate that was issued, or why there is none."""

    conditions: tuple[Condition, ...] = ()
    certificate_chain: str = ""
    not_before: Timestamp | None = None
    begin_refresh_at: Timestamp | None = None
    not_after: Timestamp | None = None


class PodCertificateRequest(Closed, frozen=True, gc=False):
    """A node's request for a certificate of a pod."""

    api_version: str = always(API_VERSION)
    kind: str = always("PodCertificateRequest")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PodCertificateRequestSpec = always(PodCertificateRequestSpec())
    status: PodCertificateRequestStatus = always(PodCertificateRequestStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(
        CertificateSigningRequest,
        "certificatesigningrequests",
        "csr",
        namespaced=False,
        has_status=True,
    ),
    declare_kind(ClusterTrustBundle, "clustertrustbundles", namespaced=False),
    declare_kind(PodCertificateRequest, "podcertificaterequests", has_status=True),
)
