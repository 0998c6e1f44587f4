"""The roles of deploy/: the programs run with them against a real server, and need each rule.

The server's audit log says what the programs asked for. It is compared with the rules both ways:
nothing was forbidden, and no rule allows what was not asked for.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from moorage.api.gates import Gates
from moorage.apiserver.runtime_config import read_runtime_config
from moorage.apiserver.settings import Auditing, Settings
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.contract import Request
from tests.deploy.manifests import (
    NAMESPACE,
    RunningProgram,
    Tree,
    base,
    command_of,
    of_kind,
    running,
    serving,
)
from tests.stories.stage import kind_of, path_of, profile_trees


class Access(NamedTuple):
    """Something that a rule allows, or that a program asked for."""

    verb: str
    group: str
    resource: str
    name: str = ""  # of rules that name objects


class Recorded(NamedTuple):
    """What the programs did, by program."""

    asked: dict[str, set[Access]]
    forbidden: list[str]


PROGRAMS = ("scheduler", "controllers", "metrics")
GATES = Gates.parse("DRAResourcePoolStatus=true", preset="kubernetes-1.37")
FASTER = {"moorage-metrics": ["--interval=1s"], "moorage-scheduler": [], "moorage-controllers": []}
# What is no request of its own, or takes too long to happen here, and why it is allowed.
RARE = {
    Access("update", "resource.k8s.io", "resourceclaims/binding"): "checked with a claim's status",
    Access("patch", "", "events"): "an event that repeats; the explainer waits a minute before",
}
WORK = """
apiVersion: v1
kind: Namespace
metadata: {name: kept}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: extended}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: 'device.driver == "gpu.nvidia.com"'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-binding}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}
  validations: [{expression: '!object.metadata.name.startsWith("unbound")'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-binding}
spec: {policyName: no-binding, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-deletion}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [resource.k8s.io]
      apiVersions: [v1]
      operations: [DELETE]
      resources: [resourceclaims]
  validations: [{expression: 'request.namespace != "kept"'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-deletion}
spec: {policyName: no-deletion, validationActions: [Deny]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: low}
spec:
  schedulerName: moorage-scheduler
  containers: [{name: c, image: i, resources: {requests: {cpu: 200}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: with-claim}
spec:
  schedulerName: moorage-scheduler
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: with-extended}
spec:
  schedulerName: moorage-scheduler
  containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: unbound}
spec:
  schedulerName: moorage-scheduler
  containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: unbound, namespace: kept}
spec:
  schedulerName: moorage-scheduler
  containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: too-large}
spec:
  schedulerName: moorage-scheduler
  containers: [{name: c, image: i, resources: {requests: {cpu: 1000}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: many}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 9}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: explained}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: many}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
---
apiVersion: resource.k8s.io/v1alpha3
kind: ResourcePoolStatusRequest
metadata: {name: pools}
spec: {driver: gpu.nvidia.com}
"""

OLD_REQUEST = """
apiVersion: resource.k8s.io/v1alpha3
kind: ResourcePoolStatusRequest
metadata: {name: old}
spec: {driver: example.com}
"""

HIGH = """
apiVersion: v1
kind: Pod
metadata: {name: high}
spec:
  priorityClassName: high
  schedulerName: moorage-scheduler
  containers: [{name: c, image: i, resources: {requests: {cpu: 200}}}]
"""


class Server:
    """A server that the programs run against, and its audit log."""

    def __init__(
        self,
        client: ApiClient,
        log: Path,
        kubeconfig: Path,
        programs: tuple[str, ...] = PROGRAMS,
    ) -> None:
        self._client, self._log, self._kubeconfig = client, log, kubeconfig
        self._programs = programs

    async def send(self, method: str, path: str, tree: Any, kind: str = "application/json") -> Any:
        """Send a request as the administrator, and return the object of the answer."""
        body = msgspec.json.encode(tree)
        answer = await self._client.send(Request(method, path, "", body, kind))
        return msgspec.json.decode(answer.body)

    async def get(self, path: str) -> Any:
        return msgspec.json.decode((await self._client.send(Request("GET", path))).body)

    async def create(self, text: str | Tree) -> None:
        """Create the objects of manifests."""
        for tree in yaml.safe_load_all(text) if isinstance(text, str) else [text]:
            namespace = tree["metadata"].get("namespace", "default")
            await self.send("POST", path_of(kind_of(tree), namespace), tree)

    async def token(self, account: str) -> str:
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = await self.send("POST", path, asked)
        return str(answer["status"]["token"])

    async def kubeconfig_of(self, account: str, folder: Path) -> Path:
        """Write a kubeconfig of a service account."""
        tree = yaml.safe_load(self._kubeconfig.read_text())
        tree["users"][0]["user"] = {"token": await self.token(account)}
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(tree))
        return path

    def recorded(self) -> Recorded:
        """Return what service accounts of the chart have asked for so far."""
        asked: dict[str, set[Access]] = {program: set() for program in self._programs}
        forbidden: list[str] = []
        start = f"system:serviceaccount:{NAMESPACE}:moorage-"
        for line in self._log.read_text().splitlines():
            event = json.loads(line)
            user = event["user"]["username"]
            if not user.startswith(start) or "objectRef" not in event:
                continue
            access = _access(event)
            asked[user.removeprefix(start)].add(access)
            if event.get("responseStatus", {}).get("code") == 403 and not _is_denied_on_purpose(
                event
            ):
                forbidden.append(f"{user}: {access}: {event['responseStatus'].get('message')}")
        return Recorded(asked, forbidden)


def _access(event: Any) -> Access:
    reference = event["objectRef"]
    resource, part = reference.get("resource", ""), reference.get("subresource", "")
    return Access(
        event["verb"],
        reference.get("apiGroup", ""),
        f"{resource}/{part}" if part else resource,
        reference.get("name", "") if resource == "leases" and event["verb"] != "create" else "",
    )


def _is_denied_on_purpose(event: Any) -> bool:
    return "ValidatingAdmissionPolicy" in event["responseStatus"].get("message", "")


def allowed(trees: Iterable[Tree], program: str) -> set[Access]:
    """Return everything that the roles of a program allow."""
    found: set[Access] = set()
    for kind in ("ClusterRole", "Role"):
        for name, role in of_kind(trees, kind).items():
            if name in (f"moorage-{program}", f"moorage-{program}-lease"):
                for rule in role["rules"]:
                    found |= set(_expanded(rule))
    return found


def _expanded(rule: Tree) -> Iterator[Access]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", ("",)):
                    yield Access(verb, group, resource, name)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return asyncio.run(_played(tmp_path_factory.mktemp("roles")))


async def _played(folder: Path) -> Recorded:
    log, trees = folder / "audit.log", base()
    settings = Settings(
        folder / "server",
        port=0,
        has_rbac=True,
        gates=GATES,
        runtime=read_runtime_config("resource.k8s.io/v1alpha3=true,resource.k8s.io/v1beta2=true"),
        auditing=Auditing(str(log)),
    )
    async with asyncio.timeout(180), AsyncExitStack() as stack:
        await stack.enter_async_context(serving(settings))
        kubeconfig = folder / "server" / "kubeconfig"
        client = await stack.enter_async_context(http_client(load_rest_config(str(kubeconfig))))
        server = Server(client, log, kubeconfig)
        for tree in trees:
            await server.create(tree)
        await _answer_long_ago(server)
        started: list[tuple[str, RunningProgram]] = []
        for name, deployment in of_kind(trees, "Deployment").items():
            command = command_of(deployment, trees, folder / name)
            own = await server.kubeconfig_of(name, folder / name)
            program = await stack.enter_async_context(
                running([*command, f"--kubeconfig={own}", *FASTER[name]])
            )
            started.append((name, program))
        await _put_to_work(server)
        for name, program in started:
            url = await program.printed("metrics at ")
            await asyncio.to_thread(_read, url, await server.token(name))
        await _until_asked(server, trees)
        return server.recorded()


async def _until_asked(server: Server, trees: list[Tree]) -> None:
    """Wait until all that is allowed was asked for; after some time the tests say what was not."""
    wanted = {program: allowed(trees, program) - RARE.keys() for program in PROGRAMS}
    for number in range(60):
        asked = server.recorded().asked
        if all(wanted[program] <= asked[program] for program in PROGRAMS):
            return
        await _stir(server, number)
        await asyncio.sleep(0.5)


def _read(url: str, token: str) -> None:
    """Ask for metrics; the account of a program may not read them."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=10)


async def _stir(server: Server, number: int) -> None:
    """Change a node, so that pods without one are tried again."""
    change = {"metadata": {"labels": {"stirred": str(number)}}}
    path = "/api/v1/nodes/dgx-h100-0"
    await server.send("PATCH", path, change, "application/merge-patch+json")


async def _put_to_work(server: Server) -> None:
    """Give every program all kinds of work that it has."""
    for tree in profile_trees("dgx-h100", "scalar"):
        await server.create(tree)
    await server.create(WORK)
    async with asyncio.timeout(20):
        while not (await server.get("/api/v1/namespaces/default/pods/low"))["spec"].get("nodeName"):
            await asyncio.sleep(0.1)
    await server.create(HIGH)


async def _answer_long_ago(server: Server) -> None:
    """Create a request that was answered so long ago that a controller deletes it.

    No program may run yet: it would answer first, and answers do not change.
    """
    await server.create(OLD_REQUEST)
    old = {
        "status": {
            "poolCount": 0,
            "conditions": [
                {
                    "type": "Complete",
                    "status": "True",
                    "reason": "CalculationComplete",
                    "message": "",
                    "lastTransitionTime": "2020-01-01T00:00:00Z",
                }
            ],
        }
    }
    path = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests/old/status"
    await server.send("PATCH", path, old, "application/merge-patch+json")


def test_nothing_is_forbidden(recorded: Recorded) -> None:
    assert recorded.forbidden == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_ask_for_nothing_but_what_the_roles_allow(
    program: str, recorded: Recorded
) -> None:
    assert recorded.asked[program] - allowed(base(), program) == set()


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_roles_allow_nothing_but_what_the_programs_ask_for(
    program: str, recorded: Recorded
) -> None:
    unused = allowed(base(), program) - recorded.asked[program]
    assert {access for access in unused if access not in RARE} == set()
