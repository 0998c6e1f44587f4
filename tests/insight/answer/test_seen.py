"""What an expert sees: quotas, references, nodes, devices, gates, groups, refused objects.

Each situation is one file with a pending pod. The cause names what is wrong, the first fix is what
an expert would do, and every change that is offered is valid and places the pod.
"""

from __future__ import annotations

import pytest

from tests.insight.answer.asking import ADVICE, FOLDER, Expected, Situations

EXPECTED = {
    "affinity-of-two-terms": Expected("zone=eats or 1 other term;.*east", "zone=east"),
    "affinity-typo": Expected("zone=eats.*east", "zone=east"),
    "affinity-without-devices": Expected(
        "gpu=true.* n2.*devices.* n1", "remove gpu from the node affinity"
    ),
    "all-in-use": Expected("both devices.*in use.*nb1.*nb2", "wait until .*nb1", ADVICE),
    "all-of-them-one-in-use": Expected(
        "all 2 devices.*1 of them in use.*nb1", "wait until .*nb1", ADVICE
    ),
    "all-of-them-one-tainted": Expected("1 of 2 devices.*x.com/broken", "repaired", ADVICE),
    "alternatives-that-do-not-fit": Expected(
        "many .*4, 2.*big .*141Gi.*80Gi", "ask for 2 instead of 4"
    ),
    "amount-with-wrong-unit": Expected("memory 4GB.*4G", "4G instead of 4GB"),
    "constraint-with-two-mistakes": Expected(
        "names request gup, which does not exist: did you mean gpu",
        "request gpu instead of gup.*gpu.example.com/model instead of model",
    ),
    "expressions-in-two-requests": Expected(
        "request gpu: .*= is no operator, == is", 'model == "a100";.*model == "a100" && true'
    ),
    "anti-affinity-of-replicas": Expected(
        "2 of 3 pods .*no pods with app=train on the same kubernetes.io/hostname, and all 2 have",
        "run 2 replicas",
        about="deployment/train",
    ),
    "anti-affinity-without-label": Expected(
        "pod other has the same kubernetes.io/hostname", "prefer another"
    ),
    "extended-of-other-hardware": Expected(
        "nvidia.com/gpu: no device class", "install the DRA driver", ADVICE
    ),
    "more-than-a-ready-node": Expected(
        "asks for 2 devices .*, node n1 has 1; node n2 is not ready", "ask for 1 instead of 2"
    ),
    "taint-of-other-devices": Expected(
        "the only device .* taint a.com/x=1:NoSchedule; request", "tolerate a.com/x"
    ),
    "anti-affinity": Expected("anti-affinity.*pod other", "prefer another"),
    "architecture": Expected("arch=amd64.*arm64", "arch=arm64"),
    "capacity-above-range": Expected("10Gi to 40Gi.*50Gi", "ask for 40Gi"),
    "capacity-in-use": Expected("40Gi of memory, 20Gi of 80Gi.*pod nb", "ask for 20Gi of memory"),
    "capacity-of-values": Expected("10Gi, 20Gi; 30Gi", "ask for 20Gi"),
    "capacity-request-typo": Expected("capacity memroy.*memory", "memory instead of memroy"),
    "claim-being-deleted": Expected("claim mine is being deleted", "create it anew", ADVICE),
    "claim-named-as-template": Expected(
        "gpus is a claim.*resourceClaimTemplateName", "resourceClaimName: gpus"
    ),
    "claim-of-all-more-than-32": Expected("40 devices.*32 at most", "ask for 32 instead of all"),
    "claim-of-more-than-32": Expected("33 devices.*32 at most", "ask for 32 instead of 33"),
    "claim-on-full-node": Expected("claim shared .* n1: .*2 CPUs, 1 of 4", "1 CPU instead of 2"),
    "claim-on-lost-node": Expected("claim shared .*n1, which is gone", "claim shared", ADVICE),
    "claim-on-tainted-node": Expected("claim shared .* n1: .*dedicated=x", "tolerate dedicated=x"),
    "claims-compete": Expected("want 2 devices.*has 1", "add a node with 2 devices", ADVICE),
    "claims-on-different-nodes": Expected(
        "different nodes: claim a on n1, claim b on n2", "template", ADVICE
    ),
    "class-of-other-hardware": Expected(
        "tpu.google.com does not exist; there is gpu", "install the driver", ADVICE
    ),
    "constraint-of-unknown-request": Expected(
        "request gqu.*did you mean gpu", "gpu instead of gqu"
    ),
    "constraint-without-domain": Expected(
        "matchAttribute model .*gpu.example.com/model", "gpu.example.com/model instead"
    ),
    "container-claim-typo": Expected("claim device,.*devices", "devices instead of device "),
    "count-beside-all": Expected("count 2 .*All", "remove count 2"),
    "counters-never-enough": Expected(
        "whole needs 100Gi.*80Gi in all", "what driver gpu.example.com publishes", ADVICE
    ),
    "counters-of-the-whole": Expected(
        "40Gi of gpu-0-cs/memory, 0 of 80Gi.*training", "wait until .*training", ADVICE
    ),
    "cpu-of-two-containers": Expected("90 CPUs.*64 CPUs", "24 CPUs instead of 50 in container a"),
    "deployment-refused": Expected(
        "Deployment train is refused.*device,.*devices",
        "devices instead of device ",
        about="deployment/train",
    ),
    "device-not-shared": Expected("cannot be shared.*pod nb", "wait until .*pod nb", ADVICE),
    "driver-not-running": Expected(
        "no driver publishes.*gpu.example.com", "start driver gpu.example.com", ADVICE
    ),
    "entry-field-typo": Expected(
        "resourceClaimTemplate of entry.*resourceClaimTemplateName",
        "resourceClaimTemplateName instead",
    ),
    "entry-with-both": Expected(
        "both resourceClaimName and resourceClaimTemplateName", "remove resourceClaimName"
    ),
    "entry-with-source": Expected("field source.*1.31", "below source"),
    "expression-compares-amounts": Expected("compareTo", "compareTo"),
    "expression-with-and": Expected("and is no operator, && is", "&&"),
    "expression-with-one-equals": Expected("does not compile.*==", "=="),
    "extended-class-typo": Expected("gpu.exmaple.com.*gpu.example.com", "/gpu.example.com instead"),
    "extended-in-use": Expected(
        "example.com/gpu.*both devices.*notebook", "wait until .*notebook", ADVICE
    ),
    "extended-more-than-a-node": Expected(
        "example.com/gpu.*4 devices.*has 2", "ask for 2 instead of 4 in container main"
    ),
    "extended-request-and-limit": Expected("requests 1 of example.com/gpu.*limit 2", "request 2"),
    "extended-typo": Expected("example.com/gpus.*example.com/gpu", "example.com/gpu instead"),
    "extended-unmapped": Expected(
        "nvidia.com/gpu: no device class", "deviceclass.resource.kubernetes.io/gpu.example.com"
    ),
    "extended-without-limit": Expected("example.com/gpu without a limit", "set the limit"),
    "field-typo": Expected("deviceClassNam .*deviceClassName", "deviceClassName instead"),
    "gate-of-admin-access": Expected(
        "adminAccess.*DRAAdminAccess is off",
        "switch .*DRAAdminAccess on",
        ADVICE,
        options=("--feature-gates", "DRAAdminAccess=false", "--emulated-version", "1.35"),
    ),
    "gate-of-alternatives": Expected(
        "firstAvailable.*DRAPrioritizedList is off",
        "first alternative",
        options=("--feature-gates", "DRAPrioritizedList=false", "--emulated-version", "1.35"),
    ),
    "gate-of-capacity": Expected(
        "allowMultipleAllocations.*DRAConsumableCapacity is off",
        "DRAConsumableCapacity on",
        ADVICE,
        options=("--feature-gates", "DRAConsumableCapacity=false"),
    ),
    "gate-of-derived-attributes": Expected(
        "derivedAttributes.*DRADerivedAttributes is off",
        "DRADerivedAttributes on",
        ADVICE,
        options=("--feature-gates", "DRADerivedAttributes=false"),
    ),
    "gate-of-lists": Expected(
        "includes.*DRAListTypeAttributes",
        "DRAListTypeAttributes on",
        ADVICE,
        options=("--feature-gates", "DRAListTypeAttributes=false"),
    ),
    "gate-of-unknown-owner": Expected(
        "scheduling gate example.com/wait", "has not admitted", ADVICE
    ),
    "group-beside-a-large-one": Expected(
        "composite group all .* group b does not fit: u2: .*4 CPU", "", ADVICE
    ),
    "group-above-is-missing": Expected(
        "group a belongs to composite group all, which does not exist",
        "create CompositePodGroup all",
        ADVICE,
    ),
    "group-beside-a-small-one": Expected(
        "composite group all needs 2 groups with enough pods, 1 has them",
        "create the pods of another group",
        ADVICE,
    ),
    "group-in-two-zones": Expected(
        "group g must stay within one .*zone: of 2 pods .* 1 in east, 1 in west",
        "minCount 1 instead of 2",
    ),
    "group-without-zones": Expected("no node has that label", "put the label", ADVICE),
    "group-member-not-ready": Expected(
        "group g waits for pod t2: template gpuss.*gpus", "gpus instead of gpuss"
    ),
    "group-not-together": Expected(
        "group g needs 3 pods.*2 fit.*t3: .*in use", "minCount 2 instead of 3"
    ),
    "group-too-small": Expected("group g needs 4 pods.*2 exist", "minCount 2 instead of 4"),
    "group-typo": Expected("pod group worker .*workers", "workers instead of worker"),
    "host-port-of-other-protocol": Expected(
        "host port 9090 is in use on node n1", "do without host port 9090"
    ),
    "host-port-in-use": Expected("host port 8080.*n1.*other", "host port 8080"),
    "job-wider-than-devices": Expected(
        "2 of 3 pods of Job train fit", "parallelism 2 instead of 3", about="job/train"
    ),
    "label-without-devices": Expected(
        "gpu=true.* n2.*devices.* n1", "remove gpu from the node selector"
    ),
    "memory-all-in-use": Expected(
        "64Gi of memory, 0 of 512Gi.*other", "wait until pod other leaves node n1", ADVICE
    ),
    "memory-in-use": Expected(
        "64Gi of memory, 12Gi of 512Gi.*other", "12Gi of memory instead of 64Gi"
    ),
    "mode-typo": Expected("ExactCont .*ExactCount", "ExactCount instead"),
    "more-than-any-node": Expected("3 devices.*no node has more than 2", "ask for 2 instead of 3"),
    "node-label-typo": Expected("zoen=east.*zone", "zone=east"),
    "node-not-ready": Expected("n1.*is not ready", "kubectl describe node n1", ADVICE),
    "node-toleration-typo": Expected(
        "nvidia.com/gpu=present.*tolerates nvidia.com/gpus", "instead of nvidia.com/gpus"
    ),
    "plugin-more-than-a-node": Expected("16 nvidia.com/gpu.*8", "8 nvidia.com/gpu instead of 16"),
    "pod-affinity-typo": Expected("app=cahce.*app=cache", "want app=cache"),
    "pool-of-new-generation": Expected(
        "pool n1.*incomplete: 1 of 2 slices.*generation 2", "driver gpu.example.com", ADVICE
    ),
    "pool-with-duplicates": Expected(
        "pool n1.*invalid: duplicate device name gpu-0", "duplicate device name gpu-0", ADVICE
    ),
    "quota-needs-limits": Expected(
        "quota few .*limits.cpu, limits.memory.*main", "limits cpu 1, limits memory 1Gi"
    ),
    "quota-of-deployment": Expected(
        "quota gpus allows 1 device", "1 replica .*instead of 3.*quota gpus", about="pod/train-2"
    ),
    "quota-of-devices-less": Expected(
        "quota gpus allows 1 device .*2 more", "ask for 1 instead of 2.*quota gpus"
    ),
    "quota-of-devices-used": Expected(
        "quota gpus allows 1 device .*1 used", "raise quota gpus.*1 → 2"
    ),
    "quota-of-extended-resource": Expected(
        "quota few allows 1 requests.example.com/gpu", "raise quota few"
    ),
    "quota-of-memory": Expected(
        "quota few allows 4Gi requests.memory.*8Gi", "4Gi of memory instead of 8Gi.*quota few"
    ),
    "quota-of-new-claim": Expected("quota gpus allows 1 device .*2 more", "ask for 1 instead of 2"),
    "quota-of-pods": Expected(
        "quota few allows 1 pod in namespace team", "raise quota few: pods 1 → 2"
    ),
    "quota-of-priority": Expected(
        "quota few allows 0 pods.*PriorityClass In high", "raise quota few"
    ),
    "quota-of-templates": Expected("quota few allows 0 claim templates", "raise quota few"),
    "quota-second-of-two": Expected("quota b-claims allows 0 claims", "raise quota b-claims"),
    "quota-used-by-others": Expected(
        "quota few allows 10 requests.cpu.*9 used, 4 more", "1 CPU instead of 4"
    ),
    "replicas-more-than-devices": Expected(
        "2 of 3 pods of Deployment train fit.*both devices",
        "2 replicas .*instead of 3",
        about="pod/train-2",
    ),
    "request-above-limit": Expected("requests 4 of cpu.*limit 2", "limit of cpu .* to 4"),
    "request-as-in-v1beta1": Expected("deviceClassName outside exactly", "below exactly"),
    "requests-compete": Expected(
        "one .2. and two .2. want 4 devices.*has 3", "ask for 1 instead of 2 in request one"
    ),
    "restart-policy-unknown": Expected(
        "restartPolicy.*Sometimes", "correct pod train at spec.restartPolicy", ADVICE
    ),
    "scheduler-volcano": Expected("schedulerName volcano", "scheduler volcano runs", ADVICE),
    "slice-for-other-nodes": Expected("pool net .*rack In a", "label node n1 rack=a"),
    "spread-over-two-keys": Expected(
        "spread constraint over kubernetes.io/hostname.*n1", "ScheduleAnyway"
    ),
    "spread-uneven": Expected(
        "spread constraint over kubernetes.io/hostname.*n1", "ScheduleAnyway"
    ),
    "spread-without-label": Expected(
        "label topology.kubernetes.io/zone.*n1 lacks", "ScheduleAnyway"
    ),
    "taint-rule-of-one-device": Expected(
        "1 of 2 devices.*DeviceTaintRule broken-gpu-0", "DeviceTaintRule broken-gpu-0", ADVICE
    ),
    "template-named-as-claim": Expected(
        "gpus is a template.*resourceClaimName", "resourceClaimTemplateName: gpus"
    ),
    "toleration-in-the-pod": Expected(
        "the pod tolerates it, but request gpu must", "in request gpu"
    ),
    "toleration-of-other-effect": Expected(
        ":NoExecute; request gpu tolerates .*:NoSchedule", "NoExecute instead"
    ),
    "toleration-typo": Expected(
        "reserved=research.*tolerates x.com/reservd", "instead of x.com/reservd"
    ),
    "too-many-pods": Expected(
        "too many pods: node n1", "wait until pod other leaves node n1", ADVICE
    ),
    "version-that-is-gone": Expected(
        "v1alpha3 does not exist.*resource.k8s.io/v1", "resource.k8s.io/v1 instead"
    ),
    "volume-claim": Expected(
        "PersistentVolumeClaim data does not exist", "create PersistentVolumeClaim data", ADVICE
    ),
    "init-container-cpu": Expected("100 CPUs.*64 CPUs", "64 CPUs instead of 100 in container init"),
    "job-suspended": Expected("Job team/train is suspended", "suspend", about="job/train"),
    "label-of-many-values": Expected("europe-west3-a.*mean europe-west4-a", "europe-west4-a"),
    "namespace-ending": Expected("namespace team is being deleted", "another namespace", ADVICE),
    "node-name": Expected(
        "nodeName n1 .*nobody allocates", "nodeSelector .*n1 instead of nodeName"
    ),
    "one-alternative-tainted": Expected(
        "gpu .0 of 1|gpu .wants 1, 0 of 1 free", "tolerate a.com/x"
    ),
    "priority-typo": Expected("priority class hihg .*high", "high instead of hihg"),
    "quota-of-two-limits": Expected("quota compute allows 4 limits.cpu", "4 CPUs.*32Gi of memory"),
    "quota-used-in-status": Expected(
        "quota q allows 4 devices.*3 used, 2", "ask for 1 instead of 2"
    ),
    "scheduler-typo": Expected(
        "default-schedular.*default-scheduler", "schedulerName default-scheduler"
    ),
    "taint-rule-of-other-driver": Expected(
        "set by DeviceTaintRule gpu-rule", "Rule gpu-rule", ADVICE
    ),
    "taint-with-long-names": Expected("DeviceTaintRule quarantine", "DeviceTaintRule quar", ADVICE),
    "two-taints-one-tolerated": Expected("taint a.com/y=2.*does not tolerate", "tolerate a.com/y"),
}
SITUATIONS = Situations(FOLDER / "seen", EXPECTED)


def test_every_situation_has_its_expectation() -> None:
    SITUATIONS.check_names()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_cause_is_named_and_the_first_fix_helps(name: str) -> None:
    SITUATIONS.check_answer(name)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_change_that_is_offered_is_valid_and_places_the_pod(name: str) -> None:
    SITUATIONS.check_changes(name)
