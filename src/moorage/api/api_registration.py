"""apiregistration.k8s.io/v1: the API versions of a server, and who serves them."""

from __future__ import annotations

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Base64, Closed, Int32, always, named
from moorage.api.timestamp import Timestamp

GROUP = "apiregistration.k8s.io"
API_VERSION = f"{GROUP}/v1"


class ServiceReference(Closed, frozen=True, gc=False):
    """The service of another API server."""

    namespace: str = ""
    name: str = ""
    port: Int32 | None = None


class APIServiceSpec(Closed, frozen=True, gc=False):
    """A version of a group, and who serves it."""

    service: ServiceReference | None = None
    group: str = ""
    version: str = ""
    insecure_skip_tls_verify: bool = named("insecureSkipTLSVerify", False)
    ca_bundle: Base64 = ""
    group_priority_minimum: Int32 = always(0)
    version_priority: Int32 = always(0)


class APIServiceCondition(Closed, frozen=True, gc=False):
    """One observed aspect of an API service."""

    type: str = always("")
    status: str = always("")
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class APIServiceStatus(Closed, frozen=True, gc=False):
    """Whether the version can be used."""

    conditions: tuple[APIServiceCondition, ...] = ()


class APIService(Closed, frozen=True, gc=False):
    """A version of an API group, and the server that answers for it."""

    api_version: str = always(API_VERSION)
    kind: str = always("APIService")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: APIServiceSpec = always(APIServiceSpec())
    status: APIServiceStatus = always(APIServiceStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(APIService, "apiservices", namespaced=False, has_status=True),
)
