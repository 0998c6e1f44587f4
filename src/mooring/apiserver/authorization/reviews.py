"""Questions about what somebody may do, and their answers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from mooring.api.authorization import (
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
from mooring.api.fieldpath import root
from mooring.api.labels import joined
from mooring.api.meta import ObjectMeta
from mooring.apiserver.authentication.users import is_node
from mooring.apiserver.authorization.access import (
    Access,
    Allowed,
    Authorizer,
    PathAccess,
    ResourceAccess,
)
from mooring.apiserver.authorization.rbac import Policy
from mooring.apiserver.calls import User
from mooring.apiserver.status import About, bad_request
from mooring.apiserver.status import invalid as invalid_object
from mooring.validation.errors import Errors, invalid

Attributes = ResourceAttributes | NonResourceAttributes

_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_NODES = "node authorizer does not support user rule resolution"


def answer_access(
    review: SubjectAccessReview | SelfSubjectAccessReview,
    *,
    user: User,
    authorizer: Authorizer,
    namespace: str = "",
) -> SubjectAccessReview | SelfSubjectAccessReview:
    """Return a review with its answer: for the asking user, or for the one it names."""
    _check(review, namespace)
    subject = user
    if isinstance(review, SubjectAccessReview):
        spec = review.spec
        subject = User(spec.user, spec.groups, spec.uid, spec.extra_values)
    attributes = review.spec.resource_attributes or review.spec.non_resource_attributes
    assert attributes is not None  # it was checked
    decision = authorizer.authorize(_access(subject, attributes))
    allowed = isinstance(decision, Allowed)
    status = SubjectAccessReviewStatus(allowed=allowed, reason=decision.reason)
    return replace(review, status=status)


def answer_rules(
    review: SelfSubjectRulesReview, *, user: User, policy: Policy
) -> SelfSubjectRulesReview:
    """Return all that the user may do in a namespace; of nodes that cannot be told."""
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


def _access(user: User, attributes: Attributes) -> Access:
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
    """Return the fields that must have one value. What is not understood narrows nothing."""
    if selector is None:
        return {}
    return {
        requirement.key: requirement.values[0]
        for requirement in selector.requirements
        if requirement.operator == "In" and len(requirement.values) == 1
    }


# --- faults ---------------------------------------------------------------------------------------


def _check(review: SubjectAccessReview | SelfSubjectAccessReview, namespace: str) -> None:
    spec = root("spec")
    found: Errors = []
    if (review.spec.resource_attributes is None) == (review.spec.non_resource_attributes is None):
        found.append(invalid(spec, review.spec.non_resource_attributes, _ONE_OF))
    if isinstance(review, SubjectAccessReview) and not (review.spec.user or review.spec.groups):
        detail = "at least one of user or group must be specified"
        found.append(invalid(spec.child("user"), "", detail))
    is_local = isinstance(review, LocalSubjectAccessReview)
    if is_local:
        found += _local_faults(review)
    own = ObjectMeta(namespace=review.metadata.namespace if is_local else "")
    if replace(review.metadata, managed_fields=()) != own:
        detail = "must be empty except for namespace" if is_local else "must be empty"
        found.append(invalid(root("metadata"), review.metadata, detail))
    if found:
        raise invalid_object(About("", review.kind, "authorization.k8s.io"), "", found)
    if is_local and review.metadata.namespace != namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")


def _local_faults(review: SubjectAccessReview | SelfSubjectAccessReview) -> Errors:
    resource, path = review.spec.resource_attributes, review.spec.non_resource_attributes
    found: Errors = []
    if resource is not None and resource.namespace != review.metadata.namespace:
        place = root("spec.resourceAttributes.namespace")
        found.append(invalid(place, resource.namespace, "must match metadata.namespace"))
    if path is not None:
        place = root("spec.nonResourceAttributes")
        found.append(invalid(place, path, "disallowed on this kind of request"))
    return found
