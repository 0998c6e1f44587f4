"""Requests for certificates: who made them, and who may approve and sign them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.apiserver.rbac_server import RBAC, World, within

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"


def pem(group: str = "team") -> str:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "eve"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
        ]
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def request(**spec: Any) -> dict[str, Any]:
    body = {"request": pem(), "signerName": CLIENT, "usages": ["client auth"], **spec}
    return {"metadata": {"name": "r"}, "spec": body}


async def allow(world: World, name: str, verbs: list[str], *resources: str, **rule: Any) -> None:
    """Give ann a role."""
    rules = [{"verbs": verbs, "apiGroups": ["certificates.k8s.io"], "resources": resources, **rule}]
    role = {"metadata": {"name": name}, "rules": rules}
    assert (await world.ask("POST", f"{RBAC}/clusterroles", "root", role))[0] == 201
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [user]}
    assert (await world.ask("POST", f"{RBAC}/clusterrolebindings", "root", binding))[0] == 201


def test_the_server_writes_who_made_a_request(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await allow(world, "asks", ["create"], "certificatesigningrequests")
        sent = request(username="root", groups=["system:masters"])
        status, made = await world.ask("POST", REQUESTS, "ann", sent)
        assert status == 201, made
        assert made["spec"]["username"] == "ann"
        assert made["spec"]["groups"] == ["system:authenticated"]

    within(tmp_path, scenario)


def test_nobody_gets_a_certificate_for_masters_and_bytes_must_be_a_request(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        status, refused = await world.ask(
            "POST", REQUESTS, "root", request(request=pem("system:masters"))
        )
        assert status == 403
        assert f"use of {CLIENT} signer with system:masters" in refused["message"]
        status, refused = await world.ask("POST", REQUESTS, "root", request(request="aGVsbG8="))
        assert status == 422
        assert refused["message"].endswith("PEM block type must be CERTIFICATE REQUEST")

    within(tmp_path, scenario)


def test_an_approval_needs_the_verb_on_the_signer_and_stays(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await allow(world, "writes", ["update"], "certificatesigningrequests/approval")
        _, made = await world.ask("POST", REQUESTS, "root", request())
        decision = {"type": "Approved", "status": "True", "reason": "x"}
        approved = {**made, "status": {"conditions": [decision]}}
        path = f"{REQUESTS}/r/approval"
        status, refused = await world.ask("PUT", path, "ann", approved)
        assert status == 403
        assert f'not permitted to approve requests with signerName "{CLIENT}"' in refused["message"]
        await allow(world, "approves", ["approve"], "signers", resourceNames=["kubernetes.io/*"])
        status, made = await world.ask("PUT", path, "ann", approved)
        assert status == 200, made
        assert made["status"]["conditions"][0]["lastUpdateTime"]
        made["status"] = {}
        status, refused = await world.ask("PUT", path, "ann", made)
        assert status == 422
        assert 'updates may not remove a condition of type "Approved"' in refused["message"]

    within(tmp_path, scenario)


def test_only_who_may_sign_writes_a_certificate_and_nobody_approves_that_way(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        await allow(world, "reports", ["update"], "certificatesigningrequests/status")
        _, made = await world.ask("POST", REQUESTS, "root", request())
        path = f"{REQUESTS}/r/status"
        signed = {**made, "status": {"certificate": base64.b64encode(b"x").decode()}}
        status, refused = await world.ask("PUT", path, "ann", signed)
        assert (status, "not permitted to sign" in refused["message"]) == (403, True)
        approved = {**made, "status": {"conditions": [{"type": "Approved", "status": "True"}]}}
        status, refused = await world.ask("PUT", path, "root", approved)
        assert status == 422
        assert 'updates may not add a condition of type "Approved"' in refused["message"]
        assert (await world.ask("PUT", path, "root", signed))[0] == 200

    within(tmp_path, scenario)
