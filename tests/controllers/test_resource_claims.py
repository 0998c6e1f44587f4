"""Claims from templates, their names in the status, reservations, and their end."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import FINALIZER, ResourceClaim, ResourceClaimTemplate
from moorage.api.scheduling import PodGroup
from moorage.client.indexer import Indexer
from moorage.client.writes import (
    Apply,
    Create,
    Delete,
    Patch,
    RequeueAfter,
    Target,
    Update,
    Write,
)
from moorage.controllers.controller import (
    NO_ANSWERS,
    DeletedUIDs,
    Lookup,
    ReconcileFailed,
    WriteRefused,
)
from moorage.controllers.metrics import ClaimMetrics
from moorage.controllers.resource_claim_entries import prepare
from moorage.controllers.resource_claim_releases import FREED, UNSEEN_AGAIN_S, plan_claim
from moorage.controllers.resource_claims import PodClaimController, plan_pod
from moorage.kit.metrics import exposition
from tests.claims import parts
from tests.claims.parts import BY_NAME, BY_TEMPLATE
from tests.controllers.scenes import ALL, Scene, group, named_claim, pod, template

MISSING = 'resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
ADMIN = {"name": "d", "exactly": {"deviceClassName": "c", "adminAccess": True}}


def gates(flag: str) -> Gates:
    return Gates.parse(flag, unlocked=True)


# --- from template to claim -----------------------------------------------------------------------


def test_claim_is_made_from_the_template_and_named_in_the_status() -> None:
    scene = Scene()
    scene.put(template(), pod(claims=[BY_TEMPLATE]))
    claim = scene.claim()
    assert claim.metadata.generate_name == "p-r-"
    assert claim.metadata.owner_references[0].uid == scene.pod().metadata.uid
    assert scene.named() == {"r": claim.metadata.name}
    assert scene.is_at_rest()


def test_status_is_applied_with_the_manager_of_kubernetes() -> None:
    objects = Indexer()
    prepare(objects)
    objects.put(parts.pod(claims=[BY_TEMPLATE]))
    made = parts.claim("made", ownerReferences=parts.owned_by("p"))
    made.metadata.annotations["resource.kubernetes.io/pod-claim-name"] = "r"
    objects.put(made)
    (step,) = plan_pod(objects, ("ns", "p"), NO_ANSWERS, ALL)
    assert isinstance(step, Apply)
    assert (step.manager, step.subresource, step.force) == (
        "ResourceClaimController",
        "status",
        True,
    )
    assert step.body == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "uid": "p-uid"},
        "status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "made"}]},
    }


def test_all_claims_of_a_pod_are_named_with_one_write() -> None:
    scene = Scene()
    entries = [{"name": name, "resourceClaimTemplateName": "t"} for name in ("b", "a")]
    scene.put(template(), pod(claims=entries))
    assert list(scene.named()) == ["a", "b"]
    assert len(scene.claims()) == 2
    assert scene.pod().metadata.resource_version == "5", "one write after the two claims"


def test_claim_made_before_a_crash_is_adopted() -> None:
    scene = Scene()
    scene.put(template(), pod(claims=[BY_TEMPLATE]))
    name = scene.claim().metadata.name
    scene.patch(Pod, "p", "status", status={"resourceClaimStatuses": None})
    assert scene.named() == {"r": name}
    assert scene.claim().metadata.name == name


def test_claim_that_is_deleted_is_made_anew() -> None:
    scene = Scene()
    scene.put(template(), pod(claims=[BY_TEMPLATE]))
    first = scene.claim().metadata.name
    scene.delete(ResourceClaim, first)
    second = scene.claim().metadata.name
    assert second != first
    assert scene.named() == {"r": second}


def test_server_is_asked_before_a_named_claim_is_made_anew() -> None:
    objects = Indexer()
    prepare(objects)
    objects.put(template())
    objects.put(parts.pod(claims=[BY_TEMPLATE], made={"r": "late"}))
    ask = Lookup(ResourceClaim, "ns", "late")
    assert plan_pod(objects, ("ns", "p"), NO_ANSWERS, ALL) == [ask]
    late = parts.claim("late", ownerReferences=parts.owned_by("p"))
    assert plan_pod(objects, ("ns", "p"), {ask: late}, ALL) == []
    (step,) = plan_pod(objects, ("ns", "p"), {ask: None}, ALL)
    assert isinstance(step, Create)


def test_claim_of_another_pod_with_the_name_is_not_taken() -> None:
    scene = Scene()
    scene.put(template(), parts.claim("c", ownerReferences=parts.owned_by("other")))
    scene.put(pod(claims=[BY_TEMPLATE], made={"r": "c"}))
    assert scene.named()["r"] != "c"


def test_missing_template_is_told_and_its_coming_helps() -> None:
    scene = Scene()
    scene.put(pod(claims=[BY_TEMPLATE]))
    (told,) = scene.told()
    assert (told.reason, told.is_warning) == ("FailedResourceClaimCreation", True)
    assert told.message == f"PodResourceClaim r: {MISSING}"
    scene.put(template())
    assert scene.named()["r"] == scene.claim().metadata.name


def test_failures_come_again_with_growing_delays() -> None:
    scene = Scene()
    scene.put(pod(claims=[BY_TEMPLATE]))
    scene.advance(7)
    assert len(scene.told()) == 4


@pytest.mark.parametrize(
    ("flag", "request_", "reason"),
    [
        ("DRAAdminAccess=false", ADMIN, "admin access is requested, but the feature is disabled"),
        (
            "DRAPrioritizedList=false",
            {"name": "d", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]},
            "template includes a prioritized list of subrequests, but the feature is disabled",
        ),
    ],
)
def test_templates_that_need_a_feature_that_is_off(flag: str, request_: dict, reason: str) -> None:  # type: ignore[type-arg]
    scene = Scene(gates=gates(flag))
    scene.put(template("t", request_), pod(claims=[BY_TEMPLATE]))
    assert scene.messages() == [("FailedResourceClaimCreation", f"PodResourceClaim r: {reason}")]
    assert scene.claims() == []


def test_refused_claim_is_told_with_what_the_server_said() -> None:
    scene = Scene()
    said = 'resourceclaims.resource.k8s.io "p-r-x" is forbidden: exceeded quota: q'
    scene.model.admits = lambda value: (
        WriteRefused("Forbidden", said) if isinstance(value, ResourceClaim) else None
    )
    scene.put(template(), pod(claims=[BY_TEMPLATE]))
    message = f"PodResourceClaim r: create ResourceClaim : {said}"
    assert scene.messages() == [("FailedResourceClaimCreation", message)]
    scene.model.admits = lambda value: None
    scene.advance(1)
    assert scene.named()["r"] == scene.claim().metadata.name


def test_pod_that_is_done_or_deleted_gets_no_claims() -> None:
    scene = Scene()
    scene.put(template(), pod(claims=[BY_TEMPLATE], status={"phase": "Succeeded"}))
    scene.put(pod("q", claims=[BY_TEMPLATE], metadata={"finalizers": ["f"]}))
    scene.delete(Pod, "q")
    assert [claim.metadata.name for claim in scene.claims()] == []


def test_template_changed_later_changes_no_claim() -> None:
    scene = Scene()
    scene.put(template(), pod(claims=[BY_TEMPLATE]))
    before = scene.claim()
    scene.delete(ResourceClaimTemplate, "t")
    scene.put(template("t", ADMIN))
    assert scene.claim() == before


# --- groups ---------------------------------------------------------------------------------------


def test_pods_of_a_group_share_its_claim() -> None:
    scene = Scene()
    scene.put(template(), group(claims=[BY_TEMPLATE]))
    scene.put(*(pod(name, claims=[BY_TEMPLATE], group="g") for name in ("p", "q")))
    claim = scene.claim()
    assert claim.metadata.owner_references[0].kind == "PodGroup"
    assert scene.named("p") == scene.named("q") == {"r": claim.metadata.name}
    assert scene.is_at_rest()


def test_pods_wait_for_their_group() -> None:
    scene = Scene()
    scene.put(template(), pod(claims=[BY_TEMPLATE], group="g"))
    assert (scene.claims(), scene.told()) == ([], [])
    scene.put(group(claims=[BY_TEMPLATE]))
    assert scene.named()["r"] == scene.claim().metadata.name


def test_entry_that_the_group_does_not_have_is_the_pods_own() -> None:
    scene = Scene()
    scene.put(template(), group(), pod(claims=[BY_TEMPLATE], group="g"))
    assert scene.claim().metadata.owner_references[0].kind == "Pod"


def test_group_claims_with_the_feature_off_are_told_once() -> None:
    scene = Scene(gates=gates("DRAWorkloadResourceClaims=false"))
    scene.put(template(), group(claims=[BY_TEMPLATE]), pod(claims=[BY_TEMPLATE], group="g"))
    scene.advance(100)
    reason = "claim r is a PodGroup claim but the DRAWorkloadResourceClaims feature is disabled"
    assert scene.messages() == [("FailedResourceClaimCreation", f"PodResourceClaim r: {reason}")]


def test_groups_off_end_the_plan_of_their_pods() -> None:
    objects = Indexer()
    prepare(objects)
    objects.put(parts.pod(claims=[BY_TEMPLATE], group="g"))
    off = gates("GenericWorkload=false,DRAWorkloadResourceClaims=false")
    assert plan_pod(objects, ("ns", "p"), NO_ANSWERS, off) == [
        ReconcileFailed(
            "Pod is a member of PodGroup g but GenericWorkload feature is disabled", attempts_max=1
        )
    ]


def test_group_without_its_template_is_told() -> None:
    scene = Scene()
    scene.put(group(claims=[BY_TEMPLATE]))
    assert scene.messages() == [
        ("FailedResourceClaimCreation", f"PodGroupResourceClaim r: {MISSING}")
    ]


# --- pods that bypassed the scheduler -------------------------------------------------------------


def test_pod_with_a_node_gets_its_allocated_claim_reserved() -> None:
    scene = Scene()
    scene.put(named_claim(), pod(claims=[BY_NAME], nodeName="n"))
    assert scene.claim().status.reserved_for == ()
    scene.allocate("shared")
    (consumer,) = scene.claim().status.reserved_for
    assert consumer.uid == scene.pod().metadata.uid
    assert scene.is_at_rest()


def test_group_claim_is_reserved_for_the_group() -> None:
    scene = Scene()
    scene.put(template(), group(claims=[BY_TEMPLATE]))
    scene.put(pod(claims=[BY_TEMPLATE], group="g", nodeName="n"))
    scene.allocate(scene.claim().metadata.name)
    (consumer,) = scene.claim().status.reserved_for
    assert (consumer.api_group, consumer.resource) == ("scheduling.k8s.io", "podgroups")


def test_finished_pod_beside_a_running_one_leaves_the_claim_at_rest() -> None:
    scene = Scene()
    scene.put(named_claim(), pod("a", claims=[BY_NAME]), pod("b", claims=[BY_NAME]))
    scene.allocate("shared", "a", "b")
    for name in ("a", "b"):
        scene.bind(name)
    scene.phase("a", "Succeeded")
    assert [each.name for each in scene.claim().status.reserved_for] == ["b"]
    assert scene.is_at_rest()


# --- releases -------------------------------------------------------------------------------------


def used(*others: str) -> Scene:
    """Return a scene with a pod that has a generated claim and a node."""
    scene = Scene()
    scene.put(template(), pod(claims=[BY_TEMPLATE]))
    scene.allocate(scene.claim().metadata.name, "p", *others)
    scene.bind("p")
    return scene


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_generated_claim_goes_when_its_pod_is_done(phase: str) -> None:
    scene = used()
    scene.phase("p", phase)
    assert scene.claims() == []
    assert scene.is_at_rest()


def test_generated_claim_is_released_when_its_pod_is_deleted() -> None:
    scene = used()
    scene.delete(Pod, "p", grace_s=30)
    assert scene.claim().status.reserved_for != (), "the containers may still run"
    scene.delete(Pod, "p")
    claim = scene.claim()
    assert (claim.status.allocation, claim.status.reserved_for) == (None, ())
    assert claim.metadata.finalizers == ()


def test_named_claim_stays_and_is_deallocated_with_its_last_pod() -> None:
    scene = Scene()
    scene.put(named_claim(), pod("a", claims=[BY_NAME]), pod("b", claims=[BY_NAME]))
    scene.allocate("shared", "a", "b")
    scene.delete(Pod, "a")
    assert scene.claim().status.allocation is not None
    scene.delete(Pod, "b")
    assert scene.claim().status.allocation is None
    assert FINALIZER not in scene.claim().metadata.finalizers


def test_claim_that_was_never_reserved_keeps_its_allocation() -> None:
    scene = Scene()
    scene.put(named_claim())
    scene.allocate("shared")
    assert scene.claim().status.allocation is not None


# --- devices that a scheduler left behind ---------------------------------------------------------


def left_behind(*managers: str, **more: Any) -> Scene:
    """Return a scene with a claim that has devices of these managers, and no reservation."""
    scene = Scene()
    scene.put(named_claim(), pod(claims=[BY_NAME], **more))
    scene.allocate("shared")
    fields: Any = {"f:status": {"f:allocation": {"f:devices": {}}}}
    entries = [
        {"manager": each, "operation": "Update", "subresource": "status", "fieldsV1": fields}
        for each in managers
    ]
    scene.patch(ResourceClaim, "shared", metadata={"managedFields": entries})
    return scene


def test_devices_that_a_scheduler_left_to_nobody_are_freed_after_a_minute() -> None:
    scene = left_behind("kube-scheduler")
    scene.advance(59)
    assert scene.claim().status.allocation is not None
    scene.advance(2)
    assert scene.claim().status.allocation is None
    assert FINALIZER not in scene.claim().metadata.finalizers
    assert scene.messages() == [("Deallocated", FREED)]
    assert scene.is_at_rest()


@pytest.mark.parametrize(
    "managers", [(), ("kubectl-edit",), ("kube-scheduler", "kubectl-edit")], ids=str
)
def test_devices_that_are_not_a_schedulers_alone_wait_for_their_first_consumer(
    managers: tuple[str, ...],
) -> None:
    scene = left_behind(*managers)
    scene.advance(600)
    assert scene.claim().status.allocation is not None
    assert scene.is_at_rest()


def test_devices_of_a_pod_on_a_node_are_not_freed_though_the_reservation_is_gone() -> None:
    """The pod gets its reservation anew; if that is refused, its devices stay."""
    scene = left_behind("kube-scheduler")
    scene.model.allows = lambda old, new: (
        WriteRefused("Forbidden", "not now")
        if isinstance(new, ResourceClaim) and new.status.reserved_for
        else None
    )
    scene.bind("p")
    scene.advance(300)
    assert scene.claim().status.allocation is not None
    scene.model.allows = lambda old, new: None
    scene.advance(1000)
    assert [each.name for each in scene.claim().status.reserved_for] == ["p"]


def test_a_reservation_in_between_begins_the_minute_anew() -> None:
    scene = left_behind("kube-scheduler")
    scene.advance(50)
    uid = scene.pod().metadata.uid
    reserved = [{"resource": "pods", "name": "p", "uid": uid}]
    scene.patch(ResourceClaim, "shared", "status", status={"reservedFor": reserved})
    scene.patch(ResourceClaim, "shared", "status", status={"reservedFor": None})
    scene.advance(50)
    assert scene.claim().status.allocation is not None
    scene.advance(11)
    assert scene.claim().status.allocation is None


def test_a_scheduler_that_reserves_at_the_last_moment_is_first() -> None:
    """The write names the version that was looked at; the other one's reservation stays."""
    scene = left_behind("kube-scheduler")
    reserved = [{"resource": "pods", "name": "p", "uid": scene.pod().metadata.uid}]
    write = scene.model.write

    def late(what: Write) -> Any:
        if isinstance(what, Update) and not what.value.status.reserved_for:
            scene.model.write = write  # type: ignore[method-assign]
            target = Target(ResourceClaim, "ns", "shared")
            write(Patch(target, {"status": {"reservedFor": reserved}}, "status"))
        return write(what)

    scene.model.write = late  # type: ignore[assignment]
    scene.advance(300)
    found = scene.claim().status
    assert found.allocation is not None
    assert [each.name for each in found.reserved_for] == ["p"]


def test_deleted_claim_waits_for_its_user() -> None:
    scene = used()
    name = scene.claim().metadata.name
    scene.delete(ResourceClaim, name)
    assert scene.claim().status.allocation is not None
    scene.delete(Pod, "p")
    assert scene.claims() == []


def test_deleted_claim_that_nobody_uses_goes_at_once() -> None:
    scene = Scene()
    scene.put(named_claim())
    scene.allocate("shared")
    scene.delete(ResourceClaim, "shared")
    assert scene.claims() == []


def test_reservation_of_a_namesake_is_stale() -> None:
    scene = Scene()
    scene.put(named_claim(), pod(claims=[BY_NAME]))
    scene.allocate("shared", "p")
    scene.model.write(Delete(Target(Pod, "ns", "p"), grace_s=0))
    scene.put(pod(claims=[BY_NAME]))
    assert scene.claim().status.reserved_for == ()


def test_server_is_asked_for_consumers_that_were_never_seen() -> None:
    objects = Indexer()
    prepare(objects)
    objects.put(parts.claim(status={"reservedFor": [parts.for_pod("p"), parts.for_group("g")]}))
    key = ("ns", "shared")
    asks = plan_claim(objects, key, NO_ANSWERS, gates=ALL, vanished=DeletedUIDs())
    assert asks == [Lookup(Pod, "ns", "p"), Lookup(PodGroup, "ns", "g")]
    there = {asks[0]: parts.pod(), asks[1]: None}
    step, later = plan_claim(objects, key, there, gates=ALL, vanished=DeletedUIDs())  # type: ignore[arg-type]
    assert isinstance(step, Update)
    assert [each.name for each in step.value.status.reserved_for] == ["p"]
    assert later == RequeueAfter(key, UNSEEN_AGAIN_S), "p may go before it was seen"


def test_a_namesake_that_informers_still_have_does_not_release_the_claim_of_a_new_pod() -> None:
    objects = Indexer()
    prepare(objects)
    objects.put(parts.pod(metadata={"uid": "older"}))
    objects.put(parts.claim(status={"reservedFor": [parts.for_pod("p")]}))
    key = ("ns", "shared")
    (ask,) = plan_claim(objects, key, NO_ANSWERS, gates=ALL, vanished=DeletedUIDs())
    assert ask == Lookup(Pod, "ns", "p")
    steps = plan_claim(objects, key, {ask: parts.pod()}, gates=ALL, vanished=DeletedUIDs())
    assert steps == [RequeueAfter(key, UNSEEN_AGAIN_S)]


def test_consumers_that_were_seen_to_go_are_not_asked_for() -> None:
    objects = Indexer()
    prepare(objects)
    objects.put(parts.claim(status={"reservedFor": [parts.for_pod("p")]}))
    vanished = DeletedUIDs()
    vanished.note("p-uid")
    (step,) = plan_claim(objects, ("ns", "shared"), NO_ANSWERS, gates=ALL, vanished=vanished)
    assert isinstance(step, Update)
    assert step.value.status.reserved_for == ()


def test_vanished_uids_are_bounded() -> None:
    vanished = DeletedUIDs(most=2)
    for uid in ("a", "b", "c"):
        vanished.note(uid)
    assert ["a" in vanished, "b" in vanished, "c" in vanished] == [False, True, True]


def test_consumers_of_other_kinds_are_kept() -> None:
    scene = Scene()
    other = {"apiGroup": "x.example.com", "resource": "jobs", "name": "j", "uid": "j-uid"}
    scene.put(parts.claim(status={"reservedFor": [other]}))
    assert len(scene.claim().status.reserved_for) == 1


def test_claim_of_a_group_is_released_with_the_group() -> None:
    scene = Scene()
    scene.put(template(), group(claims=[BY_TEMPLATE]))
    scene.put(pod(claims=[BY_TEMPLATE], group="g"))
    scene.allocate(scene.claim().metadata.name, group="g")
    scene.delete(Pod, "p")
    assert scene.claim().status.allocation is not None
    scene.delete(PodGroup, "g")
    assert scene.claim().status.allocation is None


def test_special_claim_goes_with_its_pod_whatever_the_gates_are() -> None:
    scene = Scene(gates=gates("DRAExtendedResource=false"))
    scene.put(pod())
    owner = scene.pod().metadata.uid
    scene.put(
        parts.claim(
            "p-extended-resources-x",
            ownerReferences=parts.owned_by("p", uid=owner),
            annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        )
    )
    status = {"resourceClaimName": "p-extended-resources-x", "requestMappings": []}
    scene.patch(Pod, "p", "status", status={"extendedResourceClaimStatus": status})
    scene.allocate("p-extended-resources-x", "p")
    scene.bind("p")
    scene.phase("p", "Succeeded")
    assert scene.claims() == []


# --- metrics --------------------------------------------------------------------------------------


def test_creations_and_claims_are_counted_under_shipped_names_and_aliases() -> None:
    metrics = ClaimMetrics()
    scene = Scene(own=[PodClaimController(ALL, metrics)])
    scene.put(template("t", ADMIN), pod(claims=[BY_TEMPLATE]), named_claim())
    text = exposition(metrics.families(scene.model.objects))
    created = '{status="success",admin_access="true",owner_api_group="",owner_api_kind="Pod"} 1'
    assert f"dynamic_resource_allocation_resourceclaim_creates_total{created}" in text
    assert f"resourceclaim_controller_creates_total{created}" in text
    there = 'allocated="false",admin_access="true",source="resource'
    assert f'dynamic_resource_allocation_resource_claims{{{there}_claim_template"}} 1' in text
    assert f'resourceclaim_controller_resource_claims{{{there}-claim-template"}} 1' in text
    assert 'resource_claims{allocated="false",admin_access="false",source=""} 1' in text


def test_refused_creations_are_counted() -> None:
    metrics = ClaimMetrics()
    scene = Scene(own=[PodClaimController(ALL, metrics)])
    scene.model.admits = lambda value: (
        WriteRefused("Forbidden", "no") if isinstance(value, ResourceClaim) else None
    )
    scene.put(template(), pod(claims=[BY_TEMPLATE]))
    assert metrics.creates.value("failure", "false", "", "Pod") == 1
