"""The status of pods: kept and dropped fields, and Kubernetes' validation messages."""

from __future__ import annotations

import pytest

from moorage.api.codec import to_tree
from moorage.api.core import Pod
from moorage.api.gates import Gate, Gates
from moorage.validation.pod.strategy import PodStrategy
from tests.validation.pods import (
    ALL_OFF,
    CONTEXT,
    GATES,
    GPU,
    LABEL,
    SUBDOMAIN,
    Tree,
    container,
    pod,
    texts,
    under,
    using,
    without,
)

PODS = PodStrategy()


def status_of(new: Pod, old: Pod) -> list[str]:
    return texts(PODS.validate_status_update(new, old, CONTEXT))


# --- the status ---------------------------------------------------------------------------

CLAIMED = using({"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"})
EXTENDED: Tree = {
    "initContainers": [
        {"name": "i", "image": "x", "resources": {"limits": {"a.com/gpu": "1", "b.com/x": "0"}}}
    ],
    "containers": [container(resources={"limits": {"a.com/gpu": "2"}})],
}
MAPPING = {
    "containerName": "c",
    "resourceName": "a.com/gpu",
    "requestName": "container-1-request-0",
}
STATUS = "status.extendedResourceClaimStatus"


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        (CLAIMED, {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c1"}]}, []),
        (CLAIMED, {"resourceClaimStatuses": [{"name": "gpu"}]}, []),
        (CLAIMED, {"resourceClaimStatuses": [{"name": "xyz"}]},
         [('status.resourceClaimStatuses[0].name: Invalid value: "xyz": must match the name of an '
          "entry in `spec.resourceClaims`")]),
        (CLAIMED, {"resourceClaimStatuses": [{"name": "gpu"}, {"name": "gpu"}]},
         ['status.resourceClaimStatuses[1].name: Duplicate value: "gpu"']),
        (CLAIMED, {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "%"}]},
         [f'status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "%": {SUBDOMAIN}']),
        # extended resources
        (EXTENDED, {"extendedResourceClaimStatus": {
            "resourceClaimName": "p-extended-resources-abcde",
            "requestMappings": [MAPPING, {**MAPPING, "containerName": "i"},
                                {**MAPPING, "requestName": "container-1-request-1"}]}}, []),
        (EXTENDED, {"extendedResourceClaimStatus": {"resourceClaimName": "c"}},
         [f"{STATUS}.requestMappings: Required value: at least one request mapping is required"]),
        (EXTENDED, {"extendedResourceClaimStatus": {"requestMappings": [MAPPING]}},
         [f"{STATUS}.resourceClaimName: Required value"]),
        (EXTENDED, {"extendedResourceClaimStatus": {
            "resourceClaimName": "c",
            "requestMappings": [{**MAPPING, "containerName": "z"}]}},
         [(f'{STATUS}.requestMappings[0].containerName: Invalid value: "z": must match the name of '
          "an entry in spec.initContainers.name or spec.containers.name")]),
        (EXTENDED, {"extendedResourceClaimStatus": {
            "resourceClaimName": "c",
            "requestMappings": [{**MAPPING, "resourceName": "z.com/gpu"}]}},
         [(f'{STATUS}.requestMappings[0].resourceName: Invalid value: "z.com/gpu": must match the '
          "extended resource name of an entry in spec.initContainers.resources.requests or "
          "spec.containers.resources.requests")]),
        (EXTENDED, {"extendedResourceClaimStatus": {
            "resourceClaimName": "%",
            "requestMappings": [{**MAPPING, "requestName": "A"}]}},
         [f'{STATUS}.requestName: Invalid value: "A": {LABEL}',
          f'{STATUS}.resourceClaimName: Invalid value: "%": {SUBDOMAIN}']),
        (EXTENDED, {"extendedResourceClaimStatus": {
            "resourceClaimName": "c", "requestMappings": [MAPPING, MAPPING]}},
         [f'{STATUS}.requestMappings[1].containerName: Duplicate value: "c"',
          f'{STATUS}.requestMappings[1].resourceName: Duplicate value: "a.com/gpu"',
          f'{STATUS}.requestMappings[1].requestName: Duplicate value: "container-1-request-0"']),
        # the rest
        ({}, {"conditions": [{"type": "a/b/c", "observedGeneration": -1}]},
         [("status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative "
          "integer"),
          ('status.conditions[0].Type: Invalid value: "a/b/c": a valid label key must consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and "
          "'/' (e.g. 'example.com/MyName')")]),
        ({}, {"observedGeneration": -2},
         ["status.observedGeneration: Invalid value: -2: must be a non-negative integer"]),
        ({}, {"qosClass": "Guaranteed"},
         ['status.qosClass: Invalid value: "Guaranteed": field is immutable']),
        ({"nodeName": "n"}, {"nominatedNodeName": "m"},
         [("status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to "
          "a node")]),
        ({}, {"nominatedNodeName": "M"},
         [f'status.nominatedNodeName: Invalid value: "M": {SUBDOMAIN}']),
    ],
)  # fmt: skip
def test_statuses_that_are_wrong_are_refused(spec: Tree, status: Tree, expected: list[str]) -> None:
    old = pod(spec)
    assert status_of(pod(spec, status), old) == expected


def test_devices_of_extended_resources_may_be_resources_of_the_node() -> None:
    mapped = {"resourceClaimName": "special", "mapping": [{"name": "cpu", "quantity": "2"}]}
    extended = {"resourceClaimName": "special", "requestMappings": [MAPPING]}
    status = {
        "nodeAllocatableResourceClaimStatuses": [mapped],
        "extendedResourceClaimStatus": extended,
    }
    assert status_of(pod(EXTENDED, status), pod(EXTENDED)) == []


ALLOCATABLE = "status.nodeAllocatableResourceClaimStatuses[0]"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"resourceClaimName": "my-gpu", "containers": ["c"],
          "mapping": [{"name": "cpu", "quantity": "2"}],
          "overhead": [{"name": "hugepages-2Mi", "perPod": "2Mi"}]}, []),
        ({"resourceClaimName": "made-from-template"}, []),
        ({"resourceClaimName": "other"},
         [(f'{ALLOCATABLE}.resourceClaimName: Invalid value: "other": no mapping found in pod '
          "reference")]),
        ({"mapping": [{"name": "gpu"}]}, []),
        ({"resourceClaimName": "my-gpu", "mapping": [{"name": "ephemeral-storage"}]},
         [(f'{ALLOCATABLE}.mapping[0].name: Invalid value: "ephemeral-storage": must be a node '
          "allocatable resource name")]),
        ({"resourceClaimName": "my-gpu", "mapping": [{"name": "cpu", "quantity": "-1"}]},
         [f'{ALLOCATABLE}.mapping[0].quantity: Invalid value: "-1": must be non-negative']),
        ({"resourceClaimName": "my-gpu", "overhead": [{"name": "gpu"}]},
         [(f'{ALLOCATABLE}.overhead[0].name: Invalid value: "gpu": must be a node allocatable '
          "resource name"),
          (f'{ALLOCATABLE}.overhead[0]: Invalid value: "": at least one of perPod or perContainer '
          "must be set")]),
        ({"resourceClaimName": "my-gpu",
          "overhead": [{"name": "cpu", "perPod": "-1", "perContainer": "-2"}]},
         [f'{ALLOCATABLE}.overhead[0].perPod: Invalid value: "-1": must be non-negative',
          f'{ALLOCATABLE}.overhead[0].perContainer: Invalid value: "-2": must be non-negative']),
    ],
)  # fmt: skip
def test_node_allocatable_claims_must_be_claims_of_the_pod(
    entry: Tree, expected: list[str]
) -> None:
    spec = {"resourceClaims": [GPU, {"name": "t", "resourceClaimTemplateName": "t"}]}
    status = {
        "resourceClaimStatuses": [{"name": "t", "resourceClaimName": "made-from-template"}],
        "nodeAllocatableResourceClaimStatuses": [entry],
    }
    assert status_of(pod(spec, status), pod(spec)) == expected


HEALTH = "status.containerStatuses[0].allocatedResourcesStatus[0]"
NOT_A_CLAIM = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "
    "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)


def reported(name: str, *devices: Tree) -> Tree:
    entry = {"name": name, "resources": list(devices)}
    return {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [entry]}]}


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        (CLAIMED, reported("claim:gpu/a", {"resourceID": "d", "health": "Healthy"}), []),
        (CLAIMED, reported("claim:gpu"),
         [f'{HEALTH}.name: Invalid value: "claim:gpu": {NOT_A_CLAIM}']),
        (using({"name": "gpu"}), reported("claim:gpu"), []),
        (using({"name": "gpu"}), reported("claim:gpu/a"),
         [f'{HEALTH}.name: Invalid value: "claim:gpu/a": {NOT_A_CLAIM}']),
        (EXTENDED, reported("a.com/gpu"), []),
        ({}, reported("a.com/gpu"),
         [(f'{HEALTH}.name: Invalid value: "a.com/gpu": must match one of the container\'s '
          "resource requests")]),
        (CLAIMED, reported("claim:gpu/a", {"resourceID": "d", "health": "Fine"}),
         [(f'{HEALTH}.resources[0].health: Unsupported value: "Fine": supported values: "Healthy", '
          '"Unhealthy", "Unknown"')]),
        (CLAIMED, reported("claim:gpu/a", {"resourceID": "d", "health": "Unknown"},
                           {"resourceID": "d", "health": "Unhealthy"}),
         [f'{HEALTH}.resources[1].resourceID: Duplicate value: "d"']),
        (CLAIMED, reported("claim:gpu/a", {"resourceID": "d", "health": "Healthy", "message": ""}),
         [f"{HEALTH}.resources[0].message: Required value: must be non-empty if specified"]),
        (CLAIMED, reported("claim:gpu/a",
                           {"resourceID": "d", "health": "Healthy", "message": "é" * 513}),
         [f"{HEALTH}.resources[0].message: Too long: may not be more than 1024 bytes"]),
        # A status of a container that the pod does not have is let be.
        ({"containers": [container(name="d")]}, reported("claim:gpu"), []),
        ({}, {"ephemeralContainerStatuses": [
            {"name": "e", "allocatedResourcesStatus": [{"name": "x"}]}]},
         [("status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be "
          "specified in container status")]),
        ({}, {"ephemeralContainerStatuses": [{"name": "e", "allocatedResourcesStatus": []}]}, []),
    ],
)  # fmt: skip
def test_health_is_reported_for_devices_of_the_container(
    spec: Tree, status: Tree, expected: list[str]
) -> None:
    assert status_of(pod(spec, status), pod(spec)) == expected


@pytest.mark.parametrize(
    ("name", "is_accepted"),
    [
        ("claim:special/container-1-request-0", True),
        ("claim:special/other", False),
        ("claim:other/container-1-request-0", False),
        ("claim:special", False),
        ("claim:special/", False),
        ("claim:", False),
    ],
)
def test_health_may_name_a_request_that_serves_an_extended_resource(
    name: str, is_accepted: bool
) -> None:
    mapped = {"resourceClaimName": "special", "requestMappings": [MAPPING]}
    status = {**reported(name), "extendedResourceClaimStatus": mapped}
    expected = [] if is_accepted else [f'{HEALTH}.name: Invalid value: "{name}": {NOT_A_CLAIM}']
    assert status_of(pod(EXTENDED, status), pod(EXTENDED)) == expected


def test_health_may_not_name_an_extended_resource_of_which_none_is_wanted() -> None:
    mapping = {**MAPPING, "containerName": "i", "resourceName": "b.com/x"}
    mapped = {"resourceClaimName": "special", "requestMappings": [mapping]}
    entry = {"name": "claim:special/container-1-request-0"}
    status = {
        "initContainerStatuses": [{"name": "i", "allocatedResourcesStatus": [entry]}],
        "extendedResourceClaimStatus": mapped,
    }
    (error,) = status_of(pod(EXTENDED, status), pod(EXTENDED))
    assert error.startswith("status.initContainerStatuses[0].allocatedResourcesStatus[0].name: ")


# --- keeping and clearing -----------------------------------------------------------------

STORED = {
    "qosClass": "BestEffort",
    "observedGeneration": 4,
    "conditions": [{"type": "A", "observedGeneration": 2}, {"type": "A", "observedGeneration": 3}],
    "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c1"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [MAPPING]},
    "nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c1"}],
}


def stored_after(status: Tree, *, gates: Gates = GATES) -> Tree:
    old = pod({"resourceClaims": [GPU]}, STORED)
    new = PODS.prepare_for_status_update(pod({"nodeName": "elsewhere"}, status), old, under(gates))
    assert new.spec == old.spec
    found: Tree = to_tree(new.status)
    return found


def test_a_status_update_keeps_what_it_leaves_out_of_claims() -> None:
    kept = {name: value for name, value in STORED.items() if name != "conditions"}
    assert stored_after({"phase": "Running"}) == {**kept, "phase": "Running"}


@pytest.mark.parametrize("name", ["resourceClaimStatuses", "nodeAllocatableResourceClaimStatuses"])
def test_a_status_update_clears_claims_with_an_empty_list(name: str) -> None:
    assert name not in stored_after({name: []})


def test_a_status_update_replaces_claims() -> None:
    claims = [{"resourceClaimName": "c2"}]
    found = stored_after({"nodeAllocatableResourceClaimStatuses": claims})
    assert found["nodeAllocatableResourceClaimStatuses"] == claims


def test_conditions_keep_their_generations_in_order() -> None:
    conditions = [{"type": "A"}, {"type": "A", "observedGeneration": 9}, {"type": "A"}]
    found = stored_after({"conditions": conditions})["conditions"]
    assert [condition.get("observedGeneration") for condition in found] == [2, 9, None]


def test_a_status_update_cannot_change_owners_or_undo_deletion() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}
    old = pod(deletionTimestamp="2026-01-01T00:00:00Z", ownerReferences=[owner])
    new = PODS.prepare_for_status_update(pod(), old, CONTEXT)
    assert new.metadata.owner_references == old.metadata.owner_references
    assert new.metadata.deletion_timestamp == old.metadata.deletion_timestamp


# --- gates --------------------------------------------------------------------------------

HEALTHY = reported("claim:gpu/a", {"resourceID": "d", "health": "Healthy", "message": "fine"})
SILENT = reported("claim:gpu/a", {"resourceID": "d", "health": "Healthy"})


@pytest.mark.parametrize(
    ("gate", "given", "in_use", "left"),
    [
        (Gate.DYNAMIC_RESOURCE_ALLOCATION, {"resourceClaimStatuses": [{"name": "a"}]}, {}, {}),
        (Gate.DRA_EXTENDED_RESOURCE,
         {"extendedResourceClaimStatus": STORED["extendedResourceClaimStatus"]},
         {"extendedResourceClaimStatus": STORED["extendedResourceClaimStatus"]}, {}),
        (Gate.DRA_NODE_ALLOCATABLE_RESOURCES,
         {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}]},
         {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "d"}]}, {}),
        (Gate.RESOURCE_HEALTH_STATUS, HEALTHY, HEALTHY, {"containerStatuses": [{"name": "c"}]}),
        (Gate.RESOURCE_HEALTH_STATUS_MESSAGE, HEALTHY, HEALTHY, SILENT),
    ],
)  # fmt: skip
def test_a_disabled_status_field_is_dropped_unless_it_is_in_use(
    gate: Gate, given: Tree, in_use: Tree, left: Tree
) -> None:
    new = pod(status=given)
    assert PODS.prepare_for_status_update(new, pod(), CONTEXT).status == new.status
    dropped = PODS.prepare_for_status_update(new, pod(), under(without(gate)))
    assert dropped.status == pod(status=left).status
    if in_use:
        kept = PODS.prepare_for_status_update(new, pod(status=in_use), under(without(gate)))
        assert kept.status == new.status


def test_claim_statuses_are_kept_while_the_pod_has_claims() -> None:
    old = pod({"resourceClaims": [GPU]})
    new = pod({"resourceClaims": [GPU]}, {"resourceClaimStatuses": [{"name": "gpu"}]})
    assert PODS.prepare_for_status_update(new, old, under(ALL_OFF)).status == new.status


# --- addresses, users and states ----------------------------------------------------------


def ended(name: str, code: int) -> Tree:
    return {"name": name, "state": {"terminated": {"exitCode": code}}}


def restart_on(code: int) -> Tree:
    return {"action": "Restart", "exitCodes": {"operator": "In", "values": [code]}}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}, {"ip": "::1"}]}, []),
        (
            {"podIP": "x", "podIPs": [{"ip": "x"}]},
            ['status.podIPs[0]: Invalid value: "x": must be a valid IP address'],
        ),
        (
            {"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}]},
            ['status.podIPs: Invalid value: [{"IP":"1.1.1.1"},{"IP":"1.1.1.2"}]: may specify no'],
        ),
        (
            {"hostIP": "1.1.1.1", "hostIPs": [{"ip": "1.1.1.2"}]},
            ['status.hostIPs[0].ip: Invalid value: "1.1.1.2": must be equal to `hostIP`'],
        ),
        (
            {"containerStatuses": [{"name": "c", "user": {"linux": {"uid": 2**32, "gid": -1}}}]},
            [
                "status.containerStatuses[0].user.linux.uid: Invalid value: 4294967296: must be",
                "status.containerStatuses[0].user.linux.gid: Invalid value: -1: must be between",
            ],
        ),
    ],
)
def test_addresses_and_users(status: Tree, expected: list[str]) -> None:
    found = status_of(pod(status=status), pod())
    assert len(found) == len(expected)
    assert all(map(str.startswith, found, expected))


@pytest.mark.parametrize(
    ("policy", "rules", "code", "may_run"),
    [
        ("Always", [], 0, True),
        ("OnFailure", [], 0, False),
        ("OnFailure", [], 1, True),
        ("Never", [], 1, False),
        ("Never", [restart_on(1)], 1, True),
        (
            "Never",
            [{"action": "Restart", "exitCodes": {"operator": "In", "values": [2]}}],
            1,
            False,
        ),
        ("Never", [{"action": "RestartAllContainers"}], 0, True),
    ],
)
def test_a_container_that_ended_for_good_does_not_run_again(
    policy: str, rules: list[Tree], code: int, may_run: bool
) -> None:
    own = {"restartPolicy": "Never", "restartPolicyRules": rules} if rules else {}
    spec = {"restartPolicy": policy, "containers": [container(**own)]}
    old = pod(spec, status={"containerStatuses": [ended("c", code)]})
    new = pod(spec, status={"containerStatuses": [{"name": "c", "state": {"running": {}}}]})
    refused = (
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated "
        "state"
    )
    assert status_of(new, old) == ([] if may_run else [refused])
