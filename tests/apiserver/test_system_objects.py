"""Objects that the server keeps itself: what other components read to authenticate users."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import yaml

from moorage.apiserver.runtime_config import RuntimeConfig
from moorage.apiserver.server import Assembled, assembled
from moorage.apiserver.server_files import write_component_kubeconfigs
from moorage.apiserver.settings import Settings
from moorage.apiserver.system_objects import AUTHENTICATION, MANAGED, SYSTEM


def settings(folder: Path) -> Settings:
    return Settings(folder, has_rbac=True)


async def stored(made: Assembled, group: str, plural: str, namespace: str, name: str) -> Any:
    resource = made.context.resources.of(group, plural)
    return await made.context.registry.find(resource, namespace, name)


def test_the_authorities_of_clients_and_proxies_are_published(tmp_path: Path) -> None:
    async def run() -> None:
        async with assembled(settings(tmp_path)) as made:
            found = await stored(made, "", "configmaps", SYSTEM, AUTHENTICATION)
            assert made.credentials is not None
            assert made.credentials.front_proxy is not None
            authority = made.credentials.authority.certificate.decode()
            proxies = made.credentials.front_proxy.certificate.decode()
            assert found.data["client-ca-file"] == authority
            assert found.data["requestheader-client-ca-file"] == proxies != authority
            assert found.data["requestheader-allowed-names"] == '["front-proxy-client"]'
            role = await stored(
                made,
                "rbac.authorization.k8s.io",
                "rolebindings",
                SYSTEM,
                "system::extension-apiserver-authentication-reader",
            )
            assert {each.name for each in role.subjects} == {
                "system:kube-controller-manager",
                "system:kube-scheduler",
            }

    asyncio.run(run())


def test_every_served_version_has_an_api_service_and_others_have_none(tmp_path: Path) -> None:
    async def run() -> None:
        async with assembled(settings(tmp_path)) as made:
            apps = await stored(made, "apiregistration.k8s.io", "apiservices", "", "v1.apps")
            assert apps.status.conditions[0].reason == "Local"
            assert (apps.spec.group, apps.spec.version) == ("apps", "v1")
            assert apps.metadata.labels == {MANAGED: "onstart"}
        runtime = RuntimeConfig({"apps/v1": False})
        async with assembled(Settings(tmp_path, has_rbac=True, runtime=runtime)) as made:
            gone = await stored(made, "apiregistration.k8s.io", "apiservices", "", "v1.apps")
            assert gone is None
            assert await stored(made, "apiregistration.k8s.io", "apiservices", "", "v1.")

    asyncio.run(run())


def test_components_get_kubeconfigs_of_their_own_users(tmp_path: Path) -> None:
    async def run() -> None:
        async with assembled(settings(tmp_path)) as made:
            assert made.credentials is not None
            write_component_kubeconfigs(settings(tmp_path), "https://x:1", made.credentials)

    asyncio.run(run())
    for name in ("scheduler", "controller-manager"):
        path = tmp_path / "pki" / f"{name}.kubeconfig"
        assert path.stat().st_mode & 0o077 == 0
        tree = yaml.safe_load(path.read_text())
        assert tree["clusters"][0]["cluster"]["server"] == "https://x:1"
