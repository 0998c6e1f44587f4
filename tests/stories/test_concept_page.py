"""The concept page of Dynamic Resource Allocation: what it promises of placement and allocation."""

from __future__ import annotations

import pytest

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.insight.plan.planner import Plan
from tests.stories.tellers import explain, nodes, plan, planned, run, story, the_one

# --- prioritized list ---------------------------------------------------------------------------

LIST = "002-10-prioritized-list-template"
CATS = "002-13-cat-slice"


def test_the_first_choice_is_taken_then_the_second_and_then_nothing_is_left() -> None:
    told = plan(*story("prioritized-list", "pods", seeds=[LIST, CATS]))
    assert told["first"].devices == {"req-0/large-black": "large-black-cat"}
    assert told["second"].node == "kennel"
    assert told["second"].devices == {"req-0/small-white": "small-white-0 small-white-1"}
    assert told["third"].message.startswith(
        "0/2 nodes are available: 2 cannot allocate all claims."
    )


def test_a_node_that_can_give_the_first_choice_is_preferred() -> None:
    told = plan(*story("preferred-node", "pods", seeds=[LIST]))
    assert nodes(told) == {"first": "b", "second": "a"}
    assert told["first"].devices == {"req-0/large-black": "large-black-0"}


# --- pod groups ---------------------------------------------------------------------------------


def claim_of(found: Plan, name: str) -> ResourceClaim:
    (claim,) = (claim for claim in found.after.claims if claim.metadata.name == name)
    return claim


def reserved(claim: ResourceClaim) -> list[tuple[str, str]]:
    return [(each.resource, each.name) for each in claim.status.reserved_for]


def test_claims_that_match_those_of_the_group_are_reserved_for_it_and_others_for_the_pod() -> None:
    found = planned(*story("pod-group", "second-pod", seeds=["002-12-pod-group-and-pod"]))
    assert [each.node for each in found.placed] == ["node-1", "node-1"]
    group = [("podgroups", "training-group")]
    first, second = ([("pods", f"training-group-pod-{number}")] for number in (1, 2))
    assert {each.metadata.name: reserved(each) for each in found.after.claims} == {
        "my-pg-claim": group,
        "training-group-pg-claim-template-0": group,
        "my-pod-claim": first,
        "training-group-pod-1-pod-claim-template-0": first,
        "training-group-pod-2-pod-claim-template-0": second,
    }


def test_the_status_of_a_pod_has_the_claims_that_were_made_for_it_and_for_its_group() -> None:
    found = planned(*story("pod-group", "second-pod", seeds=["002-12-pod-group-and-pod"]))
    assert [dict(generated(each.pod)) for each in found.placed] == [
        {
            "pod-claim-template": f"training-group-pod-{number}-pod-claim-template-0",
            "pg-claim-template": "training-group-pg-claim-template-0",
        }
        for number in (1, 2)
    ]


def generated(pod: Pod) -> list[tuple[str, str | None]]:
    statuses = pod.status.resource_claim_statuses or ()
    return [(each.name, each.resource_claim_name) for each in statuses]


# --- nodes --------------------------------------------------------------------------------------


def test_a_node_selector_leads_to_the_intended_node() -> None:
    told = the_one(*story("node-selector", seeds=["002-14-pod-with-node-selector"]))
    assert told.node == "name-of-the-intended-node"


def test_pools_are_tried_in_the_order_of_their_names() -> None:
    told = plan(*story("first-fit", "pods"))
    assert {name: each.devices["device"] for name, each in told.items()} == {
        "user-1": "of-a-pool",
        "user-2": "of-b-pool",
        "user-3": "of-c-pool",
    }


# --- admin access -------------------------------------------------------------------------------

ADMIN = (CATS, "002-15-admin-access-template")


def test_admins_get_a_device_that_is_in_use_and_users_do_not() -> None:
    told = plan(*story("admin-access", "pod", seeds=ADMIN), "-n", "admins")["admins/inspector"]
    assert told.devices == {"req-0": "large-black-cat"}
    assert told.tree["requests"][0]["devices"][0]["adminAccess"] is True
    text = explain(*story("admin-access", "user", seeds=[CATS]))
    assert "large-black-cat is in use by claim users/my-cat\n" in text


def test_the_device_stays_with_the_claim_that_has_it() -> None:
    found = planned(*story("admin-access", "pod", seeds=ADMIN), "-n", "admins")
    assert reserved(claim_of(found, "my-cat")) == [("pods", "owner")]


def test_a_namespace_without_the_label_is_refused() -> None:
    result = run("plan", *story("admin-access", "pod", seeds=ADMIN), "-n", "users")
    assert result.exit_code == 1
    assert "error: " in result.stderr
    assert "requires the `resource.kubernetes.io/admin-access: true` label" in result.stderr
    assert "users/inspector   <none>" in result.stdout


def test_admin_access_is_not_exempt_from_taints() -> None:
    text = explain(*story("admin-access", "pod", "taint", seeds=ADMIN), "-n", "admins")
    assert "tolerate example.com/ill:NoSchedule in request req-0" in text


# --- partitionable devices ----------------------------------------------------------------------


def test_of_two_devices_with_6gi_of_8gi_one_can_be_had() -> None:
    options = story("shared-counters", "pods", seeds=["002-17-shared-counters"])
    assert nodes(plan(*options)) == {"first": "worker-1", "second": None}
    text = explain(*options)
    assert "device-2 of gpu-1-counters/memory 6Gi is wanted, 2Gi is left of 8Gi\n" in text
    assert "wait until claim first-devices-0 of pod first frees its devices" in text


# --- consumable capacity ------------------------------------------------------------------------

NIC, BANDWIDTH = "002-18-consumable-nic-slice", "002-19-bandwidth-template"


def test_ten_shares_of_1g_are_in_10g() -> None:
    options = story("shared-bandwidth", "senders", seeds=[NIC, BANDWIDTH])
    told = plan(*options)
    assert sum(each.node is not None for each in told.values()) == 10
    shares = [each.tree["requests"][0]["devices"][0] for each in told.values() if each.node]
    assert {(each["device"], each["consumed"]["bandwidth"]) for each in shares} == {("eth1", "1G")}
    assert len({each["shareId"] for each in shares}) == 10
    assert "eth1 of bandwidth 1G is wanted, 0 is left of 10G\n" in explain(*options)


def test_a_share_that_a_claim_has_counts() -> None:
    taken = [NIC, BANDWIDTH, "002-20-allocated-share"]
    told = plan(*story("shared-bandwidth", "senders", seeds=taken))
    assert sum(each.node is not None for each in told.values()) == 9


def test_amounts_are_rounded_up_to_the_step_and_default_to_the_policy() -> None:
    (nic, default) = the_one(*story("shared-bandwidth", "rounding", seeds=[NIC])).tree["requests"]
    assert nic["devices"][0]["consumed"] == {"bandwidth": "1G"}
    assert default["devices"][0]["consumed"] == {"bandwidth": "1M"}


def test_a_device_that_cannot_be_shared_is_given_as_a_whole() -> None:
    files = ("dedicated", "only-shared")
    told = plan(*story("shared-bandwidth", *files, seeds=[NIC, BANDWIDTH]))
    (given,) = told["template/bandwidth-claim-template"].tree["requests"][0]["devices"]
    assert given == {"driver": "dra.example.com", "pool": "a-pool", "device": "eth0"}
    assert told["claim/only-shared"].devices == {"nic": "eth1"}


@pytest.mark.parametrize(
    ("file", "devices"),
    [
        ("same", {"left": "eth0", "right": "eth0"}),
        ("devices", {"left": "eth0", "right": "eth1"}),
        ("numa-nodes", {"nics": "eth0 eth2"}),
    ],
)
def test_a_distinct_attribute_keeps_devices_apart(file: str, devices: dict[str, str]) -> None:
    assert the_one(*story("distinct-attribute", file)).devices == devices


def test_three_numa_nodes_where_there_are_two_are_too_many() -> None:
    text = explain(*story("distinct-attribute", "too-many"))
    assert "nics: 0 on eth0 eth1, 1 on eth2)" in text
    assert "ask for 2 instead of 3 in request nics" in text


# --- taints -------------------------------------------------------------------------------------

RULE = "002-21-device-taint-rule"


def test_tainted_devices_are_not_given_but_to_those_who_tolerate_it() -> None:
    text = explain(*story("device-taints", "claim", seeds=[RULE]))
    assert "has the taint dra.example.com/unhealthy=Broken:NoExecute\n" in text
    assert "tolerate dra.example.com/unhealthy=Broken:NoExecute in request device" in text
    assert the_one(*story("device-taints", "tolerating", seeds=[RULE])).devices == {
        "device": "device-1"
    }


@pytest.mark.parametrize(
    ("rule", "device"),
    [
        ("rule-without-selector", "device-1"),
        ("rule-none", "device-1"),
        ("rule-pool", None),
        ("rule-device", "device-2"),
        ("rule-class", None),
        ("rule-unit", "device-2"),
    ],
)
def test_rules_taint_what_they_select(rule: str, device: str | None) -> None:
    told = the_one(*story("device-taints", rule, "claim"))
    assert told.devices.get("device") == device


def test_all_devices_must_be_without_taint() -> None:
    text = explain(*story("device-taints", "rule-device", "all"))
    assert "device-1 has the taint dra.example.com/unhealthy=Broken:NoSchedule\n" in text


def test_a_rule_evicts_the_pods_that_use_what_it_taints() -> None:
    rule = story("device-taints", seeds=[RULE])[1]
    result = run("whatif", *story("device-taints"), "--rule", rule)
    assert result.exit_code == 1
    assert "default/user   at once   dra.example.com/unhealthy=Broken:NoExecute" in result.stdout
    assert "1 pod needs to be evicted in 1 namespace." in result.stdout


# --- binding conditions -------------------------------------------------------------------------

FABRIC = "002-25-binding-conditions-slice"


def test_a_pod_waits_for_its_device_and_the_claim_names_the_node() -> None:
    options = story("binding-conditions", "pod", seeds=[FABRIC])
    told = the_one(*options)
    assert (told.node, told.devices) == ("node-3", {"gpu": "gpu-1"})
    assert told.tree["waitsFor"] == ["dra.example.com/is-prepared"]
    allocation = claim_of(planned(*options), "gpu").status.allocation
    assert allocation is not None
    assert allocation.node_selector is not None
    (term,) = allocation.node_selector.node_selector_terms or ()
    assert [(each.key, each.values) for each in term.match_fields] == [
        ("metadata.name", ("node-3",))
    ]
    (result,) = allocation.devices.results
    assert result.binding_failure_conditions == ("dra.example.com/preparing-failed",)


def test_nodes_without_the_label_do_not_see_the_pool() -> None:
    assert the_one(*story("binding-conditions", "claim", seeds=[FABRIC])).node == "node-2"


def test_devices_without_conditions_are_given_first() -> None:
    told = the_one(*story("binding-conditions", "pod", "ready", seeds=[FABRIC]))
    assert told.devices == {"gpu": "gpu-9"}
    assert "waitsFor" not in told.tree


# --- node-allocatable resources -----------------------------------------------------------------


def test_cpus_of_sockets_count_as_cpus_of_the_node() -> None:
    told = plan(*story("node-allocatable", "cpus", seeds=["002-26-cpu-sockets-slice"]))
    placed = {name: each.devices.get("cpus") for name, each in told.items() if each.node}
    assert placed == {"first": "socket0cpus", "second": "socket1cpus", "third": None}
    assert told["fourth"].message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_the_status_of_the_pod_says_what_comes_with_the_claim() -> None:
    found = planned(*story("node-allocatable", "modest", seeds=["002-27-xpu-slice"]))
    (status,) = found.placed[0].pod.status.node_allocatable_resource_claim_statuses or ()
    assert status.resource_claim_name == "xpu"
    assert [(each.name, str(each.quantity)) for each in status.mapping] == [("memory", "8Gi")]


def test_memory_of_an_accelerator_counts_beside_that_of_the_pod() -> None:
    text = explain(*story("node-allocatable", "xpu", seeds=["002-27-xpu-slice"]))
    assert "memory: 20Gi asked for and 8Gi for the pod's devices, 24Gi of 24Gi free\n" in text
    assert "Kubernetes: 0/1 nodes are available: 1 Insufficient memory." in text
