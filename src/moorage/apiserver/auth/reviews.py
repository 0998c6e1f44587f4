"""Reviews: requests about users that are answered at once and never stored.

TokenReview                                            whose token is this
SelfSubjectReview                                      who am I
SelfSubjectRulesReview                                 what may I do in a namespace
SubjectAccessReview, Local…, SelfSubjectAccessReview   may this user do this
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from msgspec.structs import replace

from moorage.api.authentication import (
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
from moorage.api.authorization import (
    FieldSelectorAttributes,
    LocalSubjectAccessReview,
    NonResourceAttributes,
    NonResourceRule,
    ResourceAttributes,
    ResourceRule,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
    SubjectAccessReview,
    SubjectAccessReviewStatus,
    SubjectRulesReviewStatus,
)
from moorage.api.codec import decode_tree, to_tree
from moorage.api.errors import ApiError
from moorage.api.field_path import root
from moorage.api.kinds import Kind
from moorage.api.labels import joined
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.access import Access, Allowed, Authorizer, PathAccess, ResourceAccess
from moorage.apiserver.auth.authenticator import INVALID_TOKEN, TokenUser
from moorage.apiserver.auth.authorizer import AccessControl
from moorage.apiserver.auth.rbac import HeldRules
from moorage.apiserver.auth.service_account_tokens import TokenRefused
from moorage.apiserver.auth.users import User, is_node
from moorage.apiserver.http.status import About, bad_request
from moorage.apiserver.http.status import invalid as invalid_object
from moorage.apiserver.patching import FieldManager
from moorage.apiserver.patching.shapes import find_shape
from moorage.validation.errors import ErrorList, invalid

Tree = dict[str, Any]
AccessReview = SubjectAccessReview | SelfSubjectAccessReview

_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_NODES = "node authorizer does not support user rule resolution"


class TokenAuthenticator(Protocol):
    """Knows the users of tokens."""

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of tokens that name none."""

    async def token_user(self, token: str, audiences: Sequence[str]) -> TokenUser | TokenRefused:
        """Return the user of a token, if it is for one of the audiences."""


class RuleResolver(Protocol):
    """Knows the rules of users."""

    def held(self, user: User, namespace: str) -> HeldRules:
        """Return the rules that a user has in a namespace."""


async def answer_review(
    kind: Kind,
    tree: Tree,
    user: User,
    access_control: AccessControl,
    *,
    namespace: str,
    manager: str,
    now: Timestamp,
) -> Tree:
    """Return a review with its answer as status, and the manager of its fields."""
    struct: type[Any] = kind.struct
    try:
        typed = {**tree, "apiVersion": kind.api_version, "kind": kind.name}
        review = decode_tree(typed, struct).value
    except ApiError as error:
        raise bad_request(f"the {kind.name} cannot be read: {error}") from None
    answered: Any
    match review:
        case TokenReview():
            answered = await answer_token(review, access_control)
        case SelfSubjectReview():
            answered = answer_self(review, user, now)
        case SelfSubjectRulesReview():
            answered = answer_rules(review, user=user, policy=access_control)
        case _:
            authorizer = access_control.authorizer
            answered = answer_access(review, user=user, authorizer=authorizer, namespace=namespace)
    return _managed(to_tree(answered), to_tree(review), kind, manager=manager, now=now)


def _managed(answer: Tree, review: Tree, kind: Kind, *, manager: str, now: Timestamp) -> Tree:
    """Return an answer with managedFields, if its kind has them."""
    field_manager = _field_manager(kind)
    if field_manager is None:
        return answer
    owned = field_manager.update(None, review, manager=manager, now=str(now))
    entries = owned["metadata"].get("managedFields")
    metadata = {**(answer.get("metadata") or {}), **({"managedFields": entries} if entries else {})}
    return {**answer, "metadata": metadata}


@cache
def _field_manager(kind: Kind) -> FieldManager | None:
    has_shape = find_shape(kind.api_version, kind.name) is not None
    return FieldManager(kind) if has_shape else None


# --- authentication -------------------------------------------------------------------------------


async def answer_token(review: TokenReview, authenticator: TokenAuthenticator) -> TokenReview:
    """Return a review with the user of its token."""
    token = review.spec.token
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    audiences = review.spec.audiences or authenticator.audiences
    found = await authenticator.token_user(token, audiences)
    if isinstance(found, TokenRefused):
        is_plain = found.reason == INVALID_TOKEN
        error = INVALID_TOKEN if is_plain else f"[{INVALID_TOKEN}, {found.reason}]"
        status = TokenReviewStatus(error=error)
    else:
        user = _user_info(found.user)
        status = TokenReviewStatus(authenticated=True, user=user, audiences=found.audiences)
    return replace(review, status=status)


def answer_self(review: SelfSubjectReview, user: User, now: Timestamp) -> SelfSubjectReview:
    """Return a review with the user that sent it."""
    metadata = replace(review.metadata, creation_timestamp=now.truncated())
    return replace(
        review, metadata=metadata, status=SelfSubjectReviewStatus(user_info=_user_info(user))
    )


def _user_info(user: User) -> UserInfo:
    extra = {key: tuple(values) for key, values in user.extra.items()}
    return UserInfo(username=user.name, uid=user.uid, groups=user.groups, extra_values=extra)


# --- authorization --------------------------------------------------------------------------------


def answer_access(
    review: AccessReview,
    *,
    user: User,
    authorizer: Authorizer,
    namespace: str = "",
) -> AccessReview:
    """Return a review with the decision on its user: the sender, or the user that it names."""
    _check(review, namespace)
    subject = user
    if isinstance(review, SubjectAccessReview):
        spec = review.spec
        subject = User(spec.user, spec.groups, spec.uid, spec.extra_values)
    attributes = review.spec.resource_attributes or review.spec.non_resource_attributes
    assert attributes is not None  # `_check` made sure
    decision = authorizer.authorize(_access(subject, attributes))
    allowed = isinstance(decision, Allowed)
    status = SubjectAccessReviewStatus(allowed=allowed, reason=decision.reason)
    return replace(review, status=status)


def answer_rules(
    review: SelfSubjectRulesReview, *, user: User, policy: RuleResolver
) -> SelfSubjectRulesReview:
    """Return a review with the rules of a user; the rules of nodes are incomplete."""
    if not review.spec.namespace:
        raise bad_request("no namespace on request")
    held = policy.held(user, review.spec.namespace)
    faults = [*([_NODES] if is_node(user) else []), *held.faults]
    status = SubjectRulesReviewStatus(
        resource_rules=tuple(
            ResourceRule(
                verbs=rule.verbs or (),
                api_groups=rule.api_groups,
                resources=rule.resources,
                resource_names=rule.resource_names,
            )
            for rule in held.rules
            if rule.resources
        ),
        non_resource_rules=tuple(
            NonResourceRule(verbs=rule.verbs or (), non_resource_urls=rule.non_resource_urls)
            for rule in held.rules
            if rule.non_resource_urls
        ),
        incomplete=is_node(user),
        evaluation_error=joined(faults) if faults else "",
    )
    return replace(review, spec=SelfSubjectRulesReviewSpec(), status=status)


def _access(user: User, attributes: ResourceAttributes | NonResourceAttributes) -> Access:
    if isinstance(attributes, NonResourceAttributes):
        return PathAccess(user, attributes.verb, attributes.path)
    return ResourceAccess(
        user,
        attributes.verb,
        attributes.group,
        attributes.resource,
        attributes.subresource,
        attributes.namespace,
        attributes.name,
        _fields(attributes.field_selector),
    )


def _fields(selector: FieldSelectorAttributes | None) -> Mapping[str, str]:
    """Return the fields that must have one value; other requirements are ignored."""
    if selector is None:
        return {}
    return {
        requirement.key: requirement.values[0]
        for requirement in selector.requirements
        if requirement.operator == "In" and len(requirement.values) == 1
    }


def _check(review: AccessReview, namespace: str) -> None:
    spec = root("spec")
    found: ErrorList = []
    if (review.spec.resource_attributes is None) == (review.spec.non_resource_attributes is None):
        found.append(invalid(spec, review.spec.non_resource_attributes, _ONE_OF))
    if isinstance(review, SubjectAccessReview) and not (review.spec.user or review.spec.groups):
        detail = "at least one of user or group must be specified"
        found.append(invalid(spec.child("user"), "", detail))
    is_local = isinstance(review, LocalSubjectAccessReview)
    if is_local:
        found += _local_errors(review)
    own = ObjectMeta(namespace=review.metadata.namespace if is_local else "")
    if replace(review.metadata, managed_fields=()) != own:
        detail = "must be empty except for namespace" if is_local else "must be empty"
        found.append(invalid(root("metadata"), review.metadata, detail))
    if found:
        raise invalid_object(About("", review.kind, "authorization.k8s.io"), "", found)
    if is_local and review.metadata.namespace != namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")


def _local_errors(review: AccessReview) -> ErrorList:
    resource, path = review.spec.resource_attributes, review.spec.non_resource_attributes
    found: ErrorList = []
    if resource is not None and resource.namespace != review.metadata.namespace:
        place = root("spec.resourceAttributes.namespace")
        found.append(invalid(place, resource.namespace, "must match metadata.namespace"))
    if path is not None:
        place = root("spec.nonResourceAttributes")
        found.append(invalid(place, path, "disallowed on this kind of request"))
    return found
