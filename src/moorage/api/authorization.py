"""authorization.k8s.io/v1: access reviews; the server answers and never stores them."""

from __future__ import annotations

from msgspec import field

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import LabelSelectorRequirement, ObjectMeta
from moorage.api.structs import Open, always, named

GROUP = "authorization.k8s.io"
API_VERSION = "authorization.k8s.io/v1"


class FieldSelectorRequirement(Open, frozen=True, gc=False):
    """One expression over fields."""

    key: str = always("")
    operator: str = always("")
    values: tuple[str, ...] = ()


class FieldSelectorAttributes(Open, frozen=True, gc=False):
    """Limits access by a field selector."""

    raw_selector: str = ""
    requirements: tuple[FieldSelectorRequirement, ...] = ()


class LabelSelectorAttributes(Open, frozen=True, gc=False):
    """Limits access by a label selector."""

    raw_selector: str = ""
    requirements: tuple[LabelSelectorRequirement, ...] = ()


class ResourceAttributes(Open, frozen=True, gc=False):
    """A verb on a resource."""

    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    field_selector: FieldSelectorAttributes | None = None
    label_selector: LabelSelectorAttributes | None = None


class NonResourceAttributes(Open, frozen=True, gc=False):
    """A verb on a path."""

    path: str = ""
    verb: str = ""


class SubjectAccessReviewSpec(Open, frozen=True, gc=False):
    """A user and the action to review."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: tuple[str, ...] = ()
    extra_values: dict[str, tuple[str, ...]] = field(default_factory=dict, name="extra")
    uid: str = ""


class SelfSubjectAccessReviewSpec(Open, frozen=True, gc=False):
    """The action to review."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SubjectAccessReviewStatus(Open, frozen=True, gc=False):
    """Whether the action is allowed, and why."""

    allowed: bool = always(False)
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SubjectAccessReview(Open, frozen=True, gc=False):
    """Checks whether a user may perform an action."""

    api_version: str = always(API_VERSION)
    kind: str = always("SubjectAccessReview")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: SubjectAccessReviewSpec = always(SubjectAccessReviewSpec())
    status: SubjectAccessReviewStatus = always(SubjectAccessReviewStatus())


class LocalSubjectAccessReview(SubjectAccessReview, frozen=True, gc=False):
    """Checks whether a user may perform an action in a namespace."""

    kind: str = always("LocalSubjectAccessReview")


class SelfSubjectAccessReview(Open, frozen=True, gc=False):
    """Checks whether the current user may perform an action."""

    api_version: str = always(API_VERSION)
    kind: str = always("SelfSubjectAccessReview")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: SelfSubjectAccessReviewSpec = always(SelfSubjectAccessReviewSpec())
    status: SubjectAccessReviewStatus = always(SubjectAccessReviewStatus())


class SelfSubjectRulesReviewSpec(Open, frozen=True, gc=False):
    """The namespace to evaluate rules for."""

    namespace: str = ""


class ResourceRule(Open, frozen=True, gc=False):
    """Verbs on resources."""

    verbs: tuple[str, ...] = always(())
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()


class NonResourceRule(Open, frozen=True, gc=False):
    """Verbs on paths."""

    verbs: tuple[str, ...] = always(())
    non_resource_urls: tuple[str, ...] = named("nonResourceURLs", ())


class SubjectRulesReviewStatus(Open, frozen=True, gc=False):
    """Everything that is allowed, as far as known."""

    resource_rules: tuple[ResourceRule, ...] = always(())
    non_resource_rules: tuple[NonResourceRule, ...] = always(())
    incomplete: bool = always(False)
    evaluation_error: str = ""


class SelfSubjectRulesReview(Open, frozen=True, gc=False):
    """Lists the actions that the current user may perform in a namespace."""

    api_version: str = always(API_VERSION)
    kind: str = always("SelfSubjectRulesReview")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: SelfSubjectRulesReviewSpec = always(SelfSubjectRulesReviewSpec())
    status: SubjectRulesReviewStatus = always(SubjectRulesReviewStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(LocalSubjectAccessReview, "localsubjectaccessreviews", is_asked=True),
    declare_kind(
        SelfSubjectAccessReview, "selfsubjectaccessreviews", namespaced=False, is_asked=True
    ),
    declare_kind(
        SelfSubjectRulesReview, "selfsubjectrulesreviews", namespaced=False, is_asked=True
    ),
    declare_kind(SubjectAccessReview, "subjectaccessreviews", namespaced=False, is_asked=True),
)
