"""admissionregistration.k8s.io: policies and webhooks that decide about requests.

A policy says what is checked or changed, in CEL; a binding puts it into force, with parameters and
for chosen requests. Webhooks do the same outside of the server. Objects are stored in v1; the other
versions, of mutating policies, have the same fields.
"""

from __future__ import annotations

from msgspec import field

from moorage.api.kinds import Kind, declare_kind, declare_versions
from moorage.api.meta import Condition, LabelSelector, ObjectMeta
from moorage.api.structs import Base64, Closed, Int32, Int64, always

GROUP = "admissionregistration.k8s.io"
API_VERSION = f"{GROUP}/v1"

IGNORE, FAIL = "Ignore", "Fail"
EXACT, EQUIVALENT = "Exact", "Equivalent"
NEVER, IF_NEEDED = "Never", "IfNeeded"
DENY, WARN, AUDIT = "Deny", "Warn", "Audit"
ALLOW = "Allow"
APPLY_CONFIGURATION, JSON_PATCH = "ApplyConfiguration", "JSONPatch"
NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")


# --- which requests -------------------------------------------------------------------------------


class RuleWithOperations(Closed, frozen=True, gc=False):
    """Operations on resources; "*" stands for all."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str | None = None


class NamedRuleWithOperations(Closed, frozen=True, gc=False):
    """The same, for objects of some names only."""

    resource_names: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str | None = None


AnyRule = RuleWithOperations | NamedRuleWithOperations


class MatchResources(Closed, frozen=True, gc=False):
    """The requests that a policy or a binding is about."""

    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: tuple[NamedRuleWithOperations, ...] = ()
    exclude_resource_rules: tuple[NamedRuleWithOperations, ...] = ()
    match_policy: str | None = None


class MatchCondition(Closed, frozen=True, gc=False):
    """An expression that must be true for a request to be considered."""

    name: str = always("")
    expression: str = always("")


# --- policies -------------------------------------------------------------------------------------


class ParamKind(Closed, frozen=True, gc=False):
    """The kind of the parameters of a policy."""

    api_version: str = ""
    kind: str = ""


class ParamRef(Closed, frozen=True, gc=False):
    """The parameters that a binding uses: one by name, or several by labels."""

    name: str = ""
    namespace: str = ""
    selector: LabelSelector | None = None
    parameter_not_found_action: str | None = None


class Variable(Closed, frozen=True, gc=False):
    """An expression that others use by its name, as `variables.NAME`."""

    name: str = always("")
    expression: str = always("")


class Validation(Closed, frozen=True, gc=False):
    """An expression that must be true, and the message if it is not."""

    expression: str = always("")
    message: str = ""
    reason: str | None = None
    message_expression: str = ""


class AuditAnnotation(Closed, frozen=True, gc=False):
    """An expression whose value is put into the audit event."""

    key: str = always("")
    value_expression: str = always("")


class ValidatingAdmissionPolicySpec(Closed, frozen=True, gc=False):
    """What a validating policy checks."""

    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    validations: tuple[Validation, ...] = ()
    failure_policy: str | None = None
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    match_conditions: tuple[MatchCondition, ...] = ()
    variables: tuple[Variable, ...] = ()


class ExpressionWarning(Closed, frozen=True, gc=False):
    """A remark on the types in an expression."""

    field_ref: str = always("")
    warning: str = always("")


class TypeChecking(Closed, frozen=True, gc=False):
    """The remarks on all expressions of a policy."""

    expression_warnings: tuple[ExpressionWarning, ...] = ()


class ValidatingAdmissionPolicyStatus(Closed, frozen=True, gc=False):
    """What is known about a policy."""

    observed_generation: Int64 = 0
    type_checking: TypeChecking | None = None
    conditions: tuple[Condition, ...] = ()


class ValidatingAdmissionPolicy(Closed, frozen=True, gc=False):
    """Validates requests with CEL expressions."""

    api_version: str = always(API_VERSION)
    kind: str = always("ValidatingAdmissionPolicy")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ValidatingAdmissionPolicySpec = always(ValidatingAdmissionPolicySpec())
    status: ValidatingAdmissionPolicyStatus = always(ValidatingAdmissionPolicyStatus())


class ValidatingAdmissionPolicyBindingSpec(Closed, frozen=True, gc=False):
    """The policy that is put into force, and how."""

    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: tuple[str, ...] = ()


class ValidatingAdmissionPolicyBinding(Closed, frozen=True, gc=False):
    """Puts a validating policy into force."""

    api_version: str = always(API_VERSION)
    kind: str = always("ValidatingAdmissionPolicyBinding")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ValidatingAdmissionPolicyBindingSpec = always(ValidatingAdmissionPolicyBindingSpec())


class MutationExpression(Closed, frozen=True, gc=False):
    """An expression whose value is an apply configuration, or a JSON patch."""

    expression: str = ""


class Mutation(Closed, frozen=True, gc=False):
    """One change of an object."""

    patch_type: str = always("")
    apply_configuration: MutationExpression | None = None
    json_patch: MutationExpression | None = None


class MutatingAdmissionPolicySpec(Closed, frozen=True, gc=False):
    """What a mutating policy changes."""

    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    variables: tuple[Variable, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    failure_policy: str | None = None
    match_conditions: tuple[MatchCondition, ...] = ()
    reinvocation_policy: str = ""


class MutatingAdmissionPolicy(Closed, frozen=True, gc=False):
    """Changes objects in requests with CEL expressions."""

    api_version: str = always(API_VERSION)
    kind: str = always("MutatingAdmissionPolicy")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: MutatingAdmissionPolicySpec = always(MutatingAdmissionPolicySpec())


class MutatingAdmissionPolicyBindingSpec(Closed, frozen=True, gc=False):
    """The policy that is put into force, and how."""

    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None


class MutatingAdmissionPolicyBinding(Closed, frozen=True, gc=False):
    """Puts a mutating policy into force."""

    api_version: str = always(API_VERSION)
    kind: str = always("MutatingAdmissionPolicyBinding")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: MutatingAdmissionPolicyBindingSpec = always(MutatingAdmissionPolicyBindingSpec())


# --- webhooks -------------------------------------------------------------------------------------


class ServiceReference(Closed, frozen=True, gc=False):
    """The service behind which a webhook runs."""

    namespace: str = always("")
    name: str = always("")
    path: str | None = None
    port: Int32 | None = None


class WebhookClientConfig(Closed, frozen=True, gc=False):
    """Where a webhook runs, and who signs its certificate."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: Base64 = field(default="", name="caBundle")


class ValidatingWebhook(Closed, frozen=True, gc=False):
    """A webhook that may refuse requests."""

    name: str = always("")
    client_config: WebhookClientConfig = always(WebhookClientConfig())
    rules: tuple[RuleWithOperations, ...] = ()
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = always(None)
    timeout_seconds: Int32 | None = None
    admission_review_versions: tuple[str, ...] | None = always(None)
    match_conditions: tuple[MatchCondition, ...] = ()


class MutatingWebhook(Closed, frozen=True, gc=False):
    """A webhook that may refuse requests, or change their objects."""

    name: str = always("")
    client_config: WebhookClientConfig = always(WebhookClientConfig())
    rules: tuple[RuleWithOperations, ...] = ()
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = always(None)
    timeout_seconds: Int32 | None = None
    admission_review_versions: tuple[str, ...] | None = always(None)
    reinvocation_policy: str | None = None
    match_conditions: tuple[MatchCondition, ...] = ()


class ValidatingWebhookConfiguration(Closed, frozen=True, gc=False):
    """Webhooks that are asked about requests."""

    api_version: str = always(API_VERSION)
    kind: str = always("ValidatingWebhookConfiguration")
    metadata: ObjectMeta = always(ObjectMeta())
    webhooks: tuple[ValidatingWebhook, ...] = ()


class MutatingWebhookConfiguration(Closed, frozen=True, gc=False):
    """Webhooks that are asked about requests, and may change them."""

    api_version: str = always(API_VERSION)
    kind: str = always("MutatingWebhookConfiguration")
    metadata: ObjectMeta = always(ObjectMeta())
    webhooks: tuple[MutatingWebhook, ...] = ()


AnyPolicy = ValidatingAdmissionPolicy | MutatingAdmissionPolicy
AnyBinding = ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding
AnyWebhook = ValidatingWebhook | MutatingWebhook
AnyWebhookConfiguration = ValidatingWebhookConfiguration | MutatingWebhookConfiguration

_MUTATING_VERSIONS = (API_VERSION, f"{GROUP}/v1beta1", f"{GROUP}/v1alpha1")

KINDS: tuple[Kind, ...] = (
    *declare_versions(
        dict.fromkeys(_MUTATING_VERSIONS, MutatingAdmissionPolicy),
        "mutatingadmissionpolicies",
        hub_version=API_VERSION,
    ),
    *declare_versions(
        dict.fromkeys(_MUTATING_VERSIONS, MutatingAdmissionPolicyBinding),
        "mutatingadmissionpolicybindings",
        hub_version=API_VERSION,
    ),
    declare_kind(MutatingWebhookConfiguration, "mutatingwebhookconfigurations", namespaced=False),
    declare_kind(
        ValidatingAdmissionPolicy, "validatingadmissionpolicies", namespaced=False, has_status=True
    ),
    declare_kind(
        ValidatingAdmissionPolicyBinding, "validatingadmissionpolicybindings", namespaced=False
    ),
    declare_kind(
        ValidatingWebhookConfiguration, "validatingwebhookconfigurations", namespaced=False
    ),
)
