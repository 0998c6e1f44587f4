"""authentication.k8s.io/v1: who somebody is. These kinds are asked, never stored."""

from __future__ import annotations

from msgspec import field

from mooring.api.kinds import Kind, declare_kind
from mooring.api.meta import ObjectMeta
from mooring.api.structs import Int64, Open, always
from mooring.api.timestamp import Timestamp

GROUP = "authentication.k8s.io"
API_VERSION = "authentication.k8s.io/v1"


class UserInfo(Open, frozen=True, gc=False):
    """A user, and what else is known of it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra_values: dict[str, tuple[str, ...]] = field(default_factory=dict, name="extra")


class TokenReviewSpec(Open, frozen=True, gc=False):
    """A token, and whom it should be for."""

    token: str = ""
    audiences: tuple[str, ...] = ()


class TokenReviewStatus(Open, frozen=True, gc=False):
    """Whose token it is, or why it is nobody's."""

    authenticated: bool = False
    user: UserInfo = always(UserInfo())
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReview(Open, frozen=True, gc=False):
    """The question whose token this is."""

    api_version: str = always(API_VERSION)
    kind: str = always("TokenReview")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: TokenReviewSpec = always(TokenReviewSpec())
    status: TokenReviewStatus = always(TokenReviewStatus())


class SelfSubjectReviewStatus(Open, frozen=True, gc=False):
    """Who asks."""

    user_info: UserInfo = always(UserInfo())


class SelfSubjectReview(Open, frozen=True, gc=False):
    """The question who I am."""

    api_version: str = always(API_VERSION)
    kind: str = always("SelfSubjectReview")
    metadata: ObjectMeta = always(ObjectMeta())
    status: SelfSubjectReviewStatus = always(SelfSubjectReviewStatus())


class BoundObjectReference(Open, frozen=True, gc=False):
    """The object that a token lives no longer than."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Open, frozen=True, gc=False):
    """What token is wanted."""

    audiences: tuple[str, ...] | None = always(None)
    expiration_seconds: Int64 | None = always(None)
    bound_object_ref: BoundObjectReference | None = always(None)
    attestations: dict[str, tuple[str, ...]] = field(default_factory=dict)


class TokenRequestStatus(Open, frozen=True, gc=False):
    """The token."""

    token: str = always("")
    expiration_timestamp: Timestamp | None = always(None)


class TokenRequest(Open, frozen=True, gc=False):
    """The wish for a token of a service account."""

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
