"""authentication.k8s.io/v1: tokens and users; these kinds are answered, never stored."""

from __future__ import annotations

from msgspec import field

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Int64, Open, always
from moorage.api.timestamp import Timestamp

GROUP = "authentication.k8s.io"
API_VERSION = "authentication.k8s.io/v1"


class UserInfo(Open, frozen=True, gc=False):
    """A user, with its groups and extra information."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra_values: dict[str, tuple[str, ...]] = field(default_factory=dict, name="extra")


class TokenReviewSpec(Open, frozen=True, gc=False):
    """A token, and its intended audiences."""

    token: str = ""
    audiences: tuple[str, ...] = ()


class TokenReviewStatus(Open, frozen=True, gc=False):
    """The user of the token, or why it is not valid."""

    authenticated: bool = False
    user: UserInfo = always(UserInfo())
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReview(Open, frozen=True, gc=False):
    """Checks a token and finds its user."""

    api_version: str = always(API_VERSION)
    kind: str = always("TokenReview")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: TokenReviewSpec = always(TokenReviewSpec())
    status: TokenReviewStatus = always(TokenReviewStatus())


class SelfSubjectReviewStatus(Open, frozen=True, gc=False):
    """The user that makes the request."""

    user_info: UserInfo = always(UserInfo())


class SelfSubjectReview(Open, frozen=True, gc=False):
    """Returns the attributes of the current user."""

    api_version: str = always(API_VERSION)
    kind: str = always("SelfSubjectReview")
    metadata: ObjectMeta = always(ObjectMeta())
    status: SelfSubjectReviewStatus = always(SelfSubjectReviewStatus())


class BoundObjectReference(Open, frozen=True, gc=False):
    """The object whose deletion ends a token."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Open, frozen=True, gc=False):
    """The requested token."""

    audiences: tuple[str, ...] | None = always(None)
    expiration_seconds: Int64 | None = always(None)
    bound_object_ref: BoundObjectReference | None = always(None)
    attestations: dict[str, tuple[str, ...]] = field(default_factory=dict)


class TokenRequestStatus(Open, frozen=True, gc=False):
    """The token."""

    token: str = always("")
    expiration_timestamp: Timestamp | None = always(None)


class TokenRequest(Open, frozen=True, gc=False):
    """Requests a token for a service account."""

    api_version: str = always(API_VERSION)
    kind: str = always("TokenRequest")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: TokenRequestSpec = always(TokenRequestSpec())
    status: TokenRequestStatus = always(TokenRequestStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(SelfSubjectReview, "selfsubjectreviews", namespaced=False, is_asked=True),
    declare_kind(TokenRequest, "", is_asked=True),  # only as serviceaccounts/token
    declare_kind(TokenReview, "tokenreviews", namespaced=False, is_asked=True),
)
