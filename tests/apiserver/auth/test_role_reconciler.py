"""Roles that are made of others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from moorage.apiserver.auth.role_reconciler import ClusterRoleAggregator
from tests.apiserver.rbac_server import RBAC, World, within

ROLES = f"{RBAC}/clusterroles"


def role(name: str, resource: str, **labels: str) -> dict[str, Any]:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": [resource]}
    return {"metadata": {"name": name, "labels": labels}, "rules": [rule]}


async def resources_of(world: World, name: str) -> list[str]:
    _, tree = await world.ask("GET", f"{ROLES}/{name}", "root")
    return [resource for rule in tree["rules"] or [] for resource in rule["resources"]]


def test_rules_are_stored_before_anybody_asks(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        assert await resources_of(world, "view") == []
        keeper = ClusterRoleAggregator(world.service.registry, world.service.resources)
        await keeper.prepare()
        assert "resourceclaims" in await resources_of(world, "view")
        before = await world.service.registry.store.revision()
        await keeper.prepare()
        assert await world.service.registry.store.revision() == before

    within(tmp_path, scenario)


def test_rules_follow_the_roles_that_they_are_of(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        keeper = ClusterRoleAggregator(world.service.registry, world.service.resources)
        await keeper.prepare()
        running = asyncio.create_task(keeper.run())
        selector = {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}
        whole = {"metadata": {"name": "whole"}, "aggregationRule": selector}
        await world.ask("POST", ROLES, "root", whole)
        await world.ask("POST", ROLES, "root", role("one", "pods", part="yes"))
        await world.ask("POST", ROLES, "root", role("two", "nodes", part="no"))

        async def becomes(wanted: list[str]) -> None:
            async with asyncio.timeout(10):
                while await resources_of(world, "whole") != wanted:
                    await asyncio.sleep(0)

        await becomes(["pods"])
        await world.ask("PUT", f"{ROLES}/two", "root", role("two", "nodes", part="yes"))
        await becomes(["pods", "nodes"])
        await world.ask("DELETE", f"{ROLES}/one", "root")
        await becomes(["nodes"])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    within(tmp_path, scenario)
