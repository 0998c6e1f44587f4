"""storage.k8s.io/v1: classes of storage, by which claims choose who makes their volumes."""

from __future__ import annotations

from msgspec import field

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Json, ObjectMeta
from moorage.api.structs import Open, always

GROUP = "storage.k8s.io"
API_VERSION = f"{GROUP}/v1"

IMMEDIATE = "Immediate"  # when a claim gets its volume
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_IS_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class StorageClass(Open, frozen=True, gc=False):
    """A kind of storage, and who provisions it."""

    api_version: str = always(API_VERSION)
    kind: str = always("StorageClass")
    metadata: ObjectMeta = always(ObjectMeta())
    provisioner: str = always("")
    parameters: dict[str, str] = field(default_factory=dict)
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[Json, ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether claims that name no class get this one."""
        annotations = self.metadata.annotations
        return "true" in (annotations.get(IS_DEFAULT_CLASS), annotations.get(BETA_IS_DEFAULT_CLASS))


KINDS: tuple[Kind, ...] = (declare_kind(StorageClass, "storageclasses", "sc", namespaced=False),)
