"""apiextensions.k8s.io/v1: definitions of custom resources.

The schema of a version is JSON here; `json_schema` reads it as Kubernetes' Go type does.
"""

from __future__ import annotations

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Json, ObjectMeta
from moorage.api.structs import Base64, Int32, Int64, Open, always, named
from moorage.api.timestamp import Timestamp

GROUP = "apiextensions.k8s.io"
API_VERSION = f"{GROUP}/v1"

NAMESPACED, CLUSTER = "Namespaced", "Cluster"
NONE, WEBHOOK = "None", "Webhook"
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
APPROVED = "api-approved.kubernetes.io"  # an annotation

NAMES_ACCEPTED = "NamesAccepted"
ESTABLISHED = "Established"
TERMINATING = "Terminating"
APPROVAL = "KubernetesAPIApprovalPolicyConformant"


class CustomResourceDefinitionNames(Open, frozen=True, gc=False):
    """The names of a resource and of its kind."""

    plural: str = always("")
    singular: str = ""
    short_names: tuple[str, ...] = ()
    kind: str = always("")
    list_kind: str = ""
    categories: tuple[str, ...] = ()


class CustomResourceValidation(Open, frozen=True, gc=False):
    """The schema of a version."""

    schema: Json = named("openAPIV3Schema", None)


class CustomResourceSubresourceStatus(Open, frozen=True, gc=False):
    """The subresource /status."""


class CustomResourceSubresourceScale(Open, frozen=True, gc=False):
    """The subresource /scale: where its fields are in an object."""

    spec_replicas_path: str = always("")
    status_replicas_path: str = always("")
    label_selector_path: str | None = None


class CustomResourceSubresources(Open, frozen=True, gc=False):
    """The subresources of a version."""

    status: CustomResourceSubresourceStatus | None = None
    scale: CustomResourceSubresourceScale | None = None


class CustomResourceColumnDefinition(Open, frozen=True, gc=False):
    """A column of tables."""

    name: str = always("")
    type: str = always("")
    format: str = ""
    description: str = ""
    priority: Int32 = 0
    json_path: str = always("")


class SelectableField(Open, frozen=True, gc=False):
    """A field that field selectors may use."""

    json_path: str = always("")


class CustomResourceDefinitionVersion(Open, frozen=True, gc=False):
    """One version of a resource."""

    name: str = always("")
    served: bool = always(False)
    storage: bool = always(False)
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: CustomResourceValidation | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: tuple[CustomResourceColumnDefinition, ...] = ()
    selectable_fields: tuple[SelectableField, ...] = ()


class ServiceReference(Open, frozen=True, gc=False):
    """A service, and a path and a port of it."""

    namespace: str = always("")
    name: str = always("")
    path: str | None = None
    port: Int32 | None = None


class WebhookClientConfig(Open, frozen=True, gc=False):
    """Where a webhook is, and who signed its certificate."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: Base64 = named("caBundle", "")


class WebhookConversion(Open, frozen=True, gc=False):
    """A webhook that converts objects."""

    client_config: WebhookClientConfig | None = None
    conversion_review_versions: tuple[str, ...] = always(())


class CustomResourceConversion(Open, frozen=True, gc=False):
    """How objects change from version to version."""

    strategy: str = always("")
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionSpec(Open, frozen=True, gc=False):
    """Names, scope and versions of a resource."""

    group: str = always("")
    names: CustomResourceDefinitionNames = always(CustomResourceDefinitionNames())
    scope: str = always("")
    versions: tuple[CustomResourceDefinitionVersion, ...] = always(())
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool = False

    @property
    def storage_version(self) -> str:
        """The version that objects are stored in; empty if there is none."""
        return next((version.name for version in self.versions if version.storage), "")


class CustomResourceDefinitionCondition(Open, frozen=True, gc=False):
    """One aspect of the state of a definition."""

    type: str = always("")
    status: str = always("")
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class CustomResourceDefinitionStatus(Open, frozen=True, gc=False):
    """How the server handles a definition."""

    conditions: tuple[CustomResourceDefinitionCondition, ...] | None = always(None)
    accepted_names: CustomResourceDefinitionNames = always(CustomResourceDefinitionNames())
    stored_versions: tuple[str, ...] | None = always(None)
    observed_generation: Int64 = 0


class CustomResourceDefinition(Open, frozen=True, gc=False):
    """A resource that users define, with its versions and their schemas."""

    api_version: str = always(API_VERSION)
    kind: str = always("CustomResourceDefinition")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: CustomResourceDefinitionSpec = always(CustomResourceDefinitionSpec())
    status: CustomResourceDefinitionStatus = always(CustomResourceDefinitionStatus())

    def is_true(self, condition_type: str) -> bool:
        """Return whether a condition is true."""
        return any(
            each.type == condition_type and each.status == "True"
            for each in self.status.conditions or ()
        )


KINDS: tuple[Kind, ...] = (
    declare_kind(
        CustomResourceDefinition,
        "customresourcedefinitions",
        "crd",
        "crds",
        namespaced=False,
        has_status=True,
    ),
)
