"""rbac.authorization.k8s.io/v1: who may do what."""

from __future__ import annotations

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.structs import Open, always, named

GROUP = "rbac.authorization.k8s.io"
API_VERSION = "rbac.authorization.k8s.io/v1"


class PolicyRule(Open, frozen=True, gc=False):
    """Verbs on resources, or on paths."""

    verbs: tuple[str, ...] | None = always(None)
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = named("nonResourceURLs", ())


class Subject(Open, frozen=True, gc=False):
    """A user, a group or a service account."""

    kind: str = always("")
    api_group: str = ""
    name: str = always("")
    namespace: str = ""


class RoleRef(Open, frozen=True, gc=False):
    """The role that a binding gives."""

    api_group: str = always("")
    kind: str = always("")
    name: str = always("")


class AggregationRule(Open, frozen=True, gc=False):
    """Roles whose rules are put together."""

    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class Role(Open, frozen=True, gc=False):
    """Rules within a namespace."""

    api_version: str = always(API_VERSION)
    kind: str = always("Role")
    metadata: ObjectMeta = always(ObjectMeta())
    rules: tuple[PolicyRule, ...] | None = always(None)


class ClusterRole(Open, frozen=True, gc=False):
    """Rules for the cluster, or for whatever namespace they are bound in."""

    api_version: str = always(API_VERSION)
    kind: str = always("ClusterRole")
    metadata: ObjectMeta = always(ObjectMeta())
    rules: tuple[PolicyRule, ...] | None = always(None)
    aggregation_rule: AggregationRule | None = None


class RoleBinding(Open, frozen=True, gc=False):
    """Gives a role to subjects in a namespace."""

    api_version: str = always(API_VERSION)
    kind: str = always("RoleBinding")
    metadata: ObjectMeta = always(ObjectMeta())
    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = always(RoleRef())


class ClusterRoleBinding(Open, frozen=True, gc=False):
    """Gives a role to subjects in the whole cluster."""

    api_version: str = always(API_VERSION)
    kind: str = always("ClusterRoleBinding")
    metadata: ObjectMeta = always(ObjectMeta())
    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = always(RoleRef())


KINDS: tuple[Kind, ...] = (
    declare_kind(ClusterRole, "clusterroles", namespaced=False),
    declare_kind(ClusterRoleBinding, "clusterrolebindings", namespaced=False),
    declare_kind(Role, "roles"),
    declare_kind(RoleBinding, "rolebindings"),
)
