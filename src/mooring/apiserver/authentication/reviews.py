"""Questions about who somebody is, and their answers."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.authentication import (
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
from mooring.api.timestamp import Timestamp
from mooring.apiserver.authentication.authenticator import Authenticator
from mooring.apiserver.authentication.serviceaccounts import Refused
from mooring.apiserver.calls import User
from mooring.apiserver.status import bad_request


async def answer_token(review: TokenReview, authenticator: Authenticator) -> TokenReview:
    """Return a review with whose token it is."""
    token = review.spec.token
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    audiences = review.spec.audiences or authenticator.issuer.audiences
    found = await authenticator.token_user(token, audiences)
    if isinstance(found, Refused):
        status = TokenReviewStatus(error=f"[invalid bearer token, {found.reason}]")
        if found.reason == "invalid bearer token":
            status = TokenReviewStatus(error=found.reason)
    else:
        user = user_info(found.user)
        status = TokenReviewStatus(authenticated=True, user=user, audiences=found.audiences)
    return replace(review, status=status)


def answer_self(review: SelfSubjectReview, user: User, now: Timestamp) -> SelfSubjectReview:
    """Return a review with who asks."""
    metadata = replace(review.metadata, creation_timestamp=now.truncated())
    status = SelfSubjectReviewStatus(user_info=user_info(user))
    return replace(review, metadata=metadata, status=status)


def user_info(user: User) -> UserInfo:
    """Return a user as the API shows it."""
    extra = {key: tuple(values) for key, values in user.extra.items()}
    return UserInfo(username=user.name, uid=user.uid, groups=user.groups, extra_values=extra)
