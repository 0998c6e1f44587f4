"""The ServiceAccount plugin, with the tolerations that DefaultTolerationSeconds adds.

A pod runs as the service account that it names, or as `default`; it gets the account's pull secrets
and a token volume. A controller creates the `default` account of every namespace.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from moorage.api.core import Container, Pod, PodSpec, ServiceAccount, Toleration
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.apiserver.admission.cache import AdmissionCache
from moorage.apiserver.auth.node_authorizer import (
    SECRETS,
    audiences_of,
    is_mirror,
    references_of,
)
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.resources import Resources
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.store.errors import StoreError

LOG = logging.getLogger(__name__)

RETRY_AFTER_S = 1.0

DEFAULT_ACCOUNT = "default"
TOLERATION_S = 300  # how long a pod stays on a node that is not ready or unreachable

TOKEN_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  # a folder
TOKEN_VOLUME_PREFIX = "kube-api-access-"  # noqa: S105  # a name
TOKEN_EXPIRATION_S = 3607
TOKEN_FILE_MODE = 0o644

_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class ServiceAccountAdmission:
    """Gives pods their service account, and namespaces their default account."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        cache: AdmissionCache,
        *,
        now: Callable[[], Timestamp],
        new_uid: Callable[[], str],
        new_suffix: Callable[[], str],
    ) -> None:
        self._registry = registry
        self._resource = resources.of("", "serviceaccounts")
        self._namespaces = resources.of("", "namespaces")
        self._cache = cache
        self._now = now
        self._new_uid = new_uid
        self._new_suffix = new_suffix
        self._wake = asyncio.Event()
        cache.on_namespace = self._wake.set

    async def find_for(self, request: ResourceRequest, pod: Pod) -> ServiceAccount | None:
        """Return the account of a pod, or raise 403; mirror pods have none."""
        if is_mirror(pod):
            if why := _refuse_mirror(pod):
                raise request.forbidden(pod, f"a mirror pod may not {why}")
            return None
        name, namespace = _account_name(pod.spec), request.target.namespace
        account = await self._find(namespace, name)
        if account is None:
            raise request.forbidden(
                pod,
                f"error looking up service account {namespace}/{name}: "
                f'serviceaccount "{name}" not found',
            )
        return account

    def admit(self, pod: Pod, account: ServiceAccount) -> Pod:
        """Return a pod with what its account gives it."""
        return with_pod_defaults(pod, self._new_suffix(), account)

    async def _find(self, namespace: str, name: str) -> ServiceAccount | None:
        """Return an account; the default one is created if it does not exist yet."""
        account = self._cache.accounts.get((namespace, name))
        if account is None:
            account = await self._registry.find(self._resource, namespace, name)
        if account is None and name == DEFAULT_ACCOUNT:
            await self._make(namespace)
            account = await self._registry.find(self._resource, namespace, name)
        return account

    # --- default accounts ---------------------------------------------------------------------

    async def run(self) -> None:
        """Create the default account of every new namespace, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.make_missing()
            except (StoreError, StatusError) as error:
                LOG.warning("default service accounts: %s", error)
                await asyncio.sleep(RETRY_AFTER_S)
                self._wake.set()

    async def make_missing(self) -> None:
        """Create the default account of every namespace that has none."""
        accounts, namespaces = self._cache.accounts, self._cache.namespaces
        missing = [
            name
            for name, namespace in sorted(namespaces.items())
            if namespace.metadata.deletion_timestamp is None
            and (name, DEFAULT_ACCOUNT) not in accounts
        ]
        failed: StatusError | None = None
        for name in missing:
            try:
                await self._make(name)
            except StatusError as error:
                failed = error
        if failed is not None:
            raise failed

    async def _make(self, name: str) -> None:
        namespace = await self._registry.find(self._namespaces, "", name)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        metadata = ObjectMeta(
            name=DEFAULT_ACCOUNT,
            namespace=name,
            uid=self._new_uid(),
            creation_timestamp=self._now(),
        )
        try:
            made = await self._registry.create(self._resource, ServiceAccount(metadata=metadata))
        except StatusError as error:
            if error.status.reason != "AlreadyExists":
                raise
        else:
            self._cache.on_update(made)


# --- pods -----------------------------------------------------------------------------------------


def _refuse_mirror(pod: Pod) -> str:
    """Return what a mirror pod may not do although it does, or ""."""
    if pod.spec.service_account_name or pod.spec.service_account:
        return "reference service accounts"
    if any(each.resource == SECRETS for each in references_of(pod)):
        return "reference secrets"
    return "use ServiceAccountToken volume projections" if audiences_of(pod) else ""


def with_default_tolerations(pod: Pod) -> Pod:
    """Return a changed pod with the tolerations that every new pod gets."""
    missing = _default_tolerations(pod.spec.tolerations)
    if not missing:
        return pod
    tolerations = (*pod.spec.tolerations, *missing)
    return replace(pod, spec=replace(pod.spec, tolerations=tolerations))


def _account_name(spec: PodSpec) -> str:
    return spec.service_account_name or spec.service_account or DEFAULT_ACCOUNT


def with_pod_defaults(pod: Pod, suffix: str, account: ServiceAccount | None = None) -> Pod:
    """Return a pod with its account, default tolerations, a priority and a token volume."""
    spec = pod.spec
    name = _account_name(spec)
    account = account or ServiceAccount()
    changed = replace(
        spec,
        service_account_name=name,
        service_account=name,
        image_pull_secrets=spec.image_pull_secrets or account.image_pull_secrets,
        tolerations=(*spec.tolerations, *_default_tolerations(spec.tolerations)),
        priority=0 if spec.priority is None else spec.priority,
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
    )
    wants_token = spec.automount_service_account_token
    if wants_token is None:
        wants_token = account.automount_service_account_token is not False
    return replace(pod, spec=_with_token(changed, suffix) if wants_token else changed)


def _with_token(spec: PodSpec, suffix: str) -> PodSpec:
    """Return a pod with a token volume, mounted where nothing else is mounted."""
    names = [volume.get("name", "") for volume in spec.volumes if isinstance(volume, dict)]
    given = next((name for name in names if name.startswith(TOKEN_VOLUME_PREFIX)), None)
    name = given or f"{TOKEN_VOLUME_PREFIX}{suffix}"
    containers = tuple(_mounted(c, name) for c in spec.containers)
    starting = tuple(_mounted(c, name) for c in spec.init_containers)
    is_used = (containers, starting) != (spec.containers, spec.init_containers)
    volumes = (*spec.volumes, _token_volume(name)) if is_used and not given else spec.volumes
    return replace(spec, volumes=volumes, containers=containers, init_containers=starting)


def _default_tolerations(given: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=TOLERATION_S)
        for key in _NODE_TAINTS
        if not any(_covers(toleration, key) for toleration in given)
    )


def _covers(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")


def _mounted(container: Container, name: str) -> Container:
    mounts = container.volume_mounts
    taken = {mount.get("mountPath") for mount in mounts if isinstance(mount, dict)}
    if TOKEN_MOUNT_PATH in taken:
        return container
    mount = {"name": name, "readOnly": True, "mountPath": TOKEN_MOUNT_PATH}
    return replace(container, volume_mounts=(*mounts, mount))


def _token_volume(name: str) -> dict[str, Any]:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_EXPIRATION_S, "path": "token"}},
        {"configMap": authority},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": TOKEN_FILE_MODE}}
