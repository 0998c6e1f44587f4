"""Who writes a policy with parameters must be able to read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.policies import GROUP, binding, policy
from tests.apiserver.rbac_server import RBAC, World, within

POLICIES = f"{GROUP}/validatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
SECRETS = {"apiVersion": "v1", "kind": "Secret"}
ANN = "&{ann 2 [system:authenticated] map[]}"


async def allow(world: World, *rules: dict[str, Any]) -> None:
    """Let ann write policies, and what the rules say."""
    anything = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}
    role = {"metadata": {"name": "r"}, "rules": [anything, *rules]}
    status, _ = await world.ask("POST", f"{RBAC}/clusterroles", "root", role)
    assert status == 201
    body = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "ann"}],
    }
    status, _ = await world.ask("POST", f"{RBAC}/clusterrolebindings", "root", body)
    assert status == 201


def test_the_kind_of_parameters_must_be_readable(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await allow(world)
        status, body = await world.ask("POST", POLICIES, "ann", policy("true", paramKind=SECRETS))
        assert status == 422
        assert body["message"].endswith(
            f'spec.paramKind: Forbidden: user {ANN} must have "get" permission on all objects of '
            "the referenced paramKind (kind=Secret, apiVersion=v1)"
        )
        status, _ = await world.ask("POST", POLICIES, "ann", policy("true", name="q"))
        assert status == 201

    within(tmp_path, scenario)


@pytest.mark.parametrize(
    ("ref", "verb"), [({"name": "s", "namespace": "default"}, "get"), ({"selector": {}}, "list")]
)
def test_the_parameters_of_a_binding_must_be_readable(
    tmp_path: Path, ref: dict[str, Any], verb: str
) -> None:
    given = binding(paramRef={**ref, "parameterNotFoundAction": "Deny"})

    async def scenario(world: World) -> None:
        await allow(world)
        await world.ask("POST", POLICIES, "root", policy("true", paramKind=SECRETS))
        status, body = await world.ask("POST", BINDINGS, "ann", given)
        assert status == 422
        assert body["message"].endswith(
            f'spec.paramRef: Forbidden: user {ANN} does not have "{verb}" permission on the object '
            "referenced by paramRef"
        )
        status, _ = await world.ask("POST", BINDINGS, "root", given)
        assert status == 201

    within(tmp_path, scenario)


def test_who_may_read_the_parameters_may_use_them(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await allow(world, {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]})
        status, _ = await world.ask("POST", POLICIES, "ann", policy("true", paramKind=SECRETS))
        assert status == 201
        ref = {"name": "s", "parameterNotFoundAction": "Deny"}
        status, _ = await world.ask("POST", BINDINGS, "ann", binding(paramRef=ref))
        assert status == 201

    within(tmp_path, scenario)
