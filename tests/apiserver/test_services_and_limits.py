"""Addresses and ports of services, bounds of namespaces, storage, and evictions within budgets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import PODS, Client, pod
from tests.apiserver.test_quotas import becomes, set_up

NAMESPACE = "/api/v1/namespaces/default"
SERVICES = f"{NAMESPACE}/services"
LIMITS = f"{NAMESPACE}/limitranges"
VOLUME_CLAIMS = f"{NAMESPACE}/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
MERGE = "application/merge-patch+json"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def service(name: str = "web", **spec: Any) -> dict[str, Any]:
    body = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": body}


def volume_claim(name: str = "data", size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    requests = {"requests": {"storage": size}}
    body = {"accessModes": ["ReadWriteOnce"], "resources": requests, **spec}
    kind = "PersistentVolumeClaim"
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def causes(response: Any) -> list[tuple[str, str]]:
    return [(c["field"], c["message"]) for c in response.json["details"]["causes"]]


# --- services ----------------------------------------------------------------------------------


def test_a_service_gets_an_address_of_its_own_and_defaults(client: Client) -> None:
    made = client.post(SERVICES, service())
    assert made.status == 201
    spec = made.json["spec"]
    assert spec["clusterIP"].startswith("127.96.")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    other = client.post(SERVICES, service("other")).json["spec"]["clusterIP"]
    assert other != spec["clusterIP"]


def test_headless_and_external_services_have_no_address(client: Client) -> None:
    spec = client.post(SERVICES, service(clusterIP="None")).json["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])
    body = service("far", type="ExternalName", externalName="db.example.com")
    spec = client.post(SERVICES, body).json["spec"]
    assert "clusterIP" not in spec
    assert "ipFamilies" not in spec


def test_an_address_that_is_taken_or_out_of_range_is_refused(client: Client) -> None:
    taken = client.post(SERVICES, service(clusterIP="127.96.7.7")).json["spec"]["clusterIP"]
    refused = client.post(SERVICES, service("two", clusterIP=taken))
    fault = f'Invalid value: ["{taken}"]: failed to allocate IP {taken}: '
    assert refused.status == 422
    assert causes(refused) == [("spec.clusterIPs", f"{fault}provided IP is already allocated")]
    outside = client.post(SERVICES, service("two", clusterIP="10.1.2.3"))
    assert outside.status == 422
    assert "the provided network does not match the current range" in outside.json["message"]


def test_node_ports_are_given_kept_and_refused_twice(client: Client) -> None:
    made = client.post(SERVICES, service(type="NodePort")).json
    port = made["spec"]["ports"][0]["nodePort"]
    assert 30000 <= port <= 32767
    ports = [{"port": 80, "nodePort": port}]
    refused = client.post(SERVICES, service("two", type="NodePort", ports=ports))
    words = f"Invalid value: {port}: provided port is already allocated"
    assert causes(refused) == [("spec.ports[0].nodePort", words)]
    del made["spec"]["ports"][0]["nodePort"]
    kept = client.put(f"{SERVICES}/web", made).json
    assert kept["spec"]["ports"][0]["nodePort"] == port
    kept["spec"] |= {"type": "ClusterIP"}
    changed = client.put(f"{SERVICES}/web", kept).json["spec"]
    assert "nodePort" not in changed["ports"][0]
    assert changed["clusterIP"] == made["spec"]["clusterIP"]


def test_the_address_of_a_service_stays(client: Client) -> None:
    made = client.post(SERVICES, service()).json
    made["spec"] |= {"clusterIP": "127.96.9.9", "clusterIPs": ["127.96.9.9"]}
    refused = client.put(f"{SERVICES}/web", made)
    words = 'Invalid value: ["127.96.9.9"]: may not change once set'
    assert causes(refused) == [("spec.clusterIPs[0]", words)]


def test_quotas_count_services_and_storage(client: Client) -> None:
    set_up(client, {"services": "2", "services.nodeports": "1", "requests.storage": "3Gi"})
    client.post(SERVICES, service(type="NodePort"))
    client.post(VOLUME_CLAIMS, volume_claim(size="2Gi"))
    becomes(client, {"services": "1", "services.nodeports": "1", "requests.storage": "2Gi"})
    assert client.post(SERVICES, service("two", type="NodePort")).status == 403
    assert client.post(VOLUME_CLAIMS, volume_claim("two", "2Gi")).status == 403
    assert client.post(SERVICES, service("two")).status == 201


# --- limit ranges ------------------------------------------------------------------------------


def limit_range(**item: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "bounds"},
        "spec": {"limits": [item]},
    }


def asking(name: str = "p", **resources: Any) -> dict[str, Any]:
    body = pod(name)
    body["spec"]["containers"][0]["resources"] = resources
    return body


def bounded(client: Client, **item: Any) -> None:
    assert client.post(LIMITS, limit_range(**item)).status == 201


def test_containers_get_default_requests_and_limits(client: Client) -> None:
    bounded(client, type="Container", default={"cpu": "1"}, defaultRequest={"cpu": "500m"})
    trial = f"{PODS}?dryRun=All"
    client.until(lambda: client.post(trial, asking()).json["metadata"].get("annotations"))
    made = client.post(PODS, asking()).json
    container = made["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}
    note = made["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    name = container["name"]
    assert note == (
        f"LimitRanger plugin set: cpu request for container {name}; cpu limit for container {name}"
    )
    assert made["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("item", "resources", "why"),
    [
        (
            {"max": {"cpu": "2"}},
            {"limits": {"cpu": "3"}},
            "maximum cpu usage per Container is 2, but limit is 3",
        ),
        (
            {"min": {"memory": "1Gi"}},
            {"requests": {"memory": "512Mi"}},
            "minimum memory usage per Container is 1Gi, but request is 512Mi",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
        ),
    ],
)
def test_a_pod_beyond_a_bound_is_forbidden(
    client: Client, item: Any, resources: Any, why: str
) -> None:
    bounded(client, type="Container", **item)
    client.until(lambda: client.post(f"{PODS}?dryRun=All", asking(**resources)).status == 403)
    refused = client.post(PODS, asking(**resources))
    assert (refused.status, refused.json["message"]) == (403, f'pods "p" is forbidden: {why}')


def test_defaults_must_suit_what_the_pod_asks_for(client: Client) -> None:
    bounded(client, type="Container", default={"cpu": "1"})
    beyond = asking(requests={"cpu": "3"})
    client.until(lambda: client.post(f"{PODS}?dryRun=All", beyond).status == 422)
    assert client.post(PODS, beyond).message == (
        'Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "3": must be '
        "less than or equal to cpu limit of 1"
    )


def test_a_claim_beyond_a_bound_is_forbidden(client: Client) -> None:
    bounded(client, type="PersistentVolumeClaim", max={"storage": "1Gi"})
    trial, body = f"{VOLUME_CLAIMS}?dryRun=All", volume_claim(size="2Gi")
    client.until(lambda: client.post(trial, body).status == 403)
    refused = client.post(VOLUME_CLAIMS, body)
    why = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    assert refused.status == 403
    assert refused.json["message"] == f'persistentvolumeclaims "data" is forbidden: {why}'


# --- storage -----------------------------------------------------------------------------------


def test_a_claim_gets_the_default_class_and_is_protected(client: Client) -> None:
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "std",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/host-path",
    }
    assert client.post(CLASSES, body).status == 201
    trial = f"{VOLUME_CLAIMS}?dryRun=All"
    client.until(lambda: "storageClassName" in client.post(trial, volume_claim()).json["spec"])
    made = client.post(VOLUME_CLAIMS, volume_claim()).json
    assert made["spec"]["storageClassName"] == "std"
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    none = client.post(VOLUME_CLAIMS, volume_claim("none", storageClassName="")).json
    assert none["spec"]["storageClassName"] == ""


# --- evictions ---------------------------------------------------------------------------------


def budget(client: Client, **status: Any) -> None:
    selector = {"matchLabels": {"app": "web"}}
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 2, "selector": selector},
    }
    made = client.post(BUDGETS, body).json
    if status:
        made["status"] = {"observedGeneration": 1, **status}
        assert client.put(f"{BUDGETS}/web/status", made).status == 200


def running(client: Client, *, ready: bool = True) -> None:
    body = pod("p")
    body["metadata"]["labels"] = {"app": "web"}
    made = client.post(PODS, body).json
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    made["status"] |= {"phase": "Running", "conditions": [condition]}
    assert client.put(f"{PODS}/p/status", made).status == 200


def evict(client: Client) -> Any:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    return client.post(f"{PODS}/p/eviction", body)


COUNTS = {"expectedPods": 3, "desiredHealthy": 2}


def test_an_eviction_that_a_budget_allows_takes_one_of_its_disruptions(client: Client) -> None:
    running(client)
    budget(client, disruptionsAllowed=1, currentHealthy=3, **COUNTS)
    assert evict(client).status == 201
    status = client.get(f"{BUDGETS}/web").json["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    (condition,) = status["conditions"]
    assert condition["type"] == "DisruptionAllowed"
    assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")
    assert condition["observedGeneration"] == 1


def test_an_eviction_that_a_budget_does_not_allow_is_429_with_its_cause(client: Client) -> None:
    running(client)
    budget(client, disruptionsAllowed=0, currentHealthy=2, **COUNTS)
    refused = evict(client)
    assert refused.status == 429
    assert refused.json["reason"] == "TooManyRequests"
    words = "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.json["message"] == words
    (cause,) = refused.json["details"]["causes"]
    assert cause == {
        "reason": "DisruptionBudget",
        "message": "The disruption budget web needs 2 healthy pods and has 2 currently",
    }
    assert client.get(f"{PODS}/p").status == 200


def test_a_budget_that_was_not_looked_at_yet_makes_evictions_wait(client: Client) -> None:
    running(client)
    budget(client)
    refused = evict(client)
    assert refused.json["details"]["retryAfterSeconds"] == 10
    (cause,) = refused.json["details"]["causes"]
    assert "is still being processed by the server" in cause["message"]


def test_a_pod_that_is_not_ready_goes_if_enough_others_are(client: Client) -> None:
    running(client, ready=False)
    budget(client, disruptionsAllowed=0, currentHealthy=2, **COUNTS)
    assert evict(client).status == 201


# --- what would otherwise be silent ------------------------------------------------------------


def bound_claim(client: Client, name: str, **spec: Any) -> str:
    assert client.post(VOLUME_CLAIMS, volume_claim(name, **spec)).status == 201
    path = f"{VOLUME_CLAIMS}/{name}"
    body = {"status": {"phase": "Bound"}}
    assert client.patch(f"{path}/status", body, MERGE).status == 200
    return path


def grow(client: Client, path: str) -> Any:
    body = {"spec": {"resources": {"requests": {"storage": "5Gi"}}}}
    return client.patch(path, body, MERGE)


def test_a_claim_grows_only_if_its_class_says_so(client: Client) -> None:
    for name, grows in (("fixed", False), ("grows", True)):
        storage = {"provisioner": "example.com/disk", "allowVolumeExpansion": grows}
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **storage}
        assert client.post(CLASSES, {**made, "metadata": {"name": name}}).status == 201
    refused = grow(client, bound_claim(client, "a", storageClassName="fixed"))
    assert refused.status == 403
    assert refused.json["message"] == (
        'persistentvolumeclaims "a" is forbidden: only dynamically provisioned pvc can be resized '
        "and the storageclass that provisions the pvc must support resize"
    )
    assert grow(client, bound_claim(client, "b", storageClassName="")).status == 403
    assert grow(client, bound_claim(client, "c", storageClassName="grows")).status == 200


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"type": "NodePort"}, "Service type NodePort: nothing listens at its node ports"),
        ({"type": "LoadBalancer"}, "Service type LoadBalancer: nothing gives it an address"),
        ({"externalIPs": ["192.0.2.7"]}, "Service with externalIPs: nothing listens at them"),
        (
            {"ports": [{"port": 53, "protocol": "UDP"}]},
            "Service with a port of UDP: the agent of a node forwards TCP only",
        ),
    ],
)
def test_a_service_says_what_of_it_nothing_acts_on(
    client: Client, spec: dict[str, Any], words: str
) -> None:
    warnings = client.post(SERVICES, service(**spec)).warnings
    assert words in warnings[-1]


def test_a_service_that_acts_has_no_warning(client: Client) -> None:
    assert client.post(SERVICES, service()).warnings == []
    headless = service("h", clusterIP="None", ports=[{"port": 53, "protocol": "UDP"}])
    assert client.post(SERVICES, headless).warnings == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("169.254.169.254", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("::", "may not be unspecified (::)"),
        ("224.0.0.1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("127.0.0.1", ""),
        ("10.0.0.1", ""),
    ],
)
def test_nothing_is_forwarded_to_special_addresses(
    client: Client, address: str, words: str
) -> None:
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    body = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "s"},
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address]}],
        "ports": [{"port": 80}],
    }
    answer = client.post(slices, body)
    if not words:
        assert answer.status == 201
        return
    shown = f'Invalid value: "{address}": {words}'
    assert causes(answer) == [("endpoints[0].addresses[0]", shown)]
