"""Everyday mistakes: the cause is named, the first fix is what an expert would do, and it helps."""

from __future__ import annotations

import pytest

from tests.insight.answer.asking import ADVICE, FOLDER, Expected, Situations

EXPECTED = {
    "all-in-use-but-fewer": Expected("1 of 2 free.* by claim held of pod notebook", "ask for 1 "),
    "amount-in-another-unit": Expected("memory 80000Gi.*80Gi", "memory 80000Mi instead"),
    "attribute-of-some": Expected("1 of 2 devices has no .*/nvlink", r"has\(.*nvlink\)"),
    "capacity-compared-as-number": Expected(
        "1:43: memory is a quantity, but 40 is an int", r'compareTo\(quantity\("40Gi"\)\) >= 0'
    ),
    "capacity-read-as-attribute": Expected("memory does not exist", r"device.capacity\["),
    "capacity-typo": Expected("capacity memroy does not exist: .*memory", "memory instead"),
    "claim-in-another-namespace": Expected("gpus is in namespace other", "create template gpus"),
    "claim-typo": Expected("shared-gpus does not exist", "shared-gpu instead"),
    "class-selector-of-nothing": Expected(
        'class gpu.example.com matches no device: .*kind "gpu".*"GPU"', "administrator's change"
    ),
    "containers-too-large-together": Expected(
        "194 CPUs, no node has more than 64",
        "30 CPUs instead of 100 in container main, 30 CPUs instead of 90 in container data",
    ),
    "constraint-typo": Expected("gpu.example.com/modle.*model", "gpu.example.com/model instead"),
    "derived-not-on-all": Expected("request second has attribute moorage.dev/side", "side"),
    "device-taint-of-driver": Expected("taint .*reserved=research", "tolerate .*reserved"),
    "device-unhealthy": Expected("taint .*unhealthy=ecc", "repaired", ADVICE),
    "held-and-fewer-than-asked": Expected(
        "3 devices.* has 2", "ask for 2 instead of 3 .*; then wait until", ADVICE
    ),
    "held-and-never-together": Expected(
        "gpu.example.com/slot, but at most 1 .*; besides, devices are in use",
        "ask for 1 instead of 2 .*; then wait",
        ADVICE,
    ),
    "held-and-none-of-that-model": Expected('"A100".*"a100"', '"a100".*; then wait', ADVICE),
    "huge-pages-nobody-has": Expected("4Gi of hugepages-1Gi, no node", "do without hugepages-1Gi"),
    "int-as-string": Expected('slot is the int 0, not the string "0"', "compare slot with 0"),
    "label-of-a-known-prefix": Expected(
        "kubernetes.io/zone=a, a label that no node has$", "remove kubernetes.io/zone"
    ),
    "label-without-its-prefix": Expected("os=linux.*mean kubernetes.io/os", "kubernetes.io/os="),
    "list-as-scalar": Expected('zones is a list.*"left"', r'includes\("left"\)'),
    "mistakes-in-two-selectors": Expected("modle does not exist.*slot is the int 0", "slot with 0"),
    "match-across-drivers": Expected("request nic has attribute .*slot", "constraint"),
    "memory-and-huge-pages": Expected(
        "2Ti of memory.*; and .*hugepages-2Mi, no node", "512Gi of memory .*do without hugepages"
    ),
    "memory-of-node": Expected("1Ti of memory.*512Gi", "512Gi of memory"),
    "name-with-domain-in-brackets": Expected(
        'attribute model is in domain "gpu.example.com"', r'\["gpu.example.com"\].model instead'
    ),
    "node-cordoned": Expected("n1.*is cordoned", "uncordon n1", ADVICE),
    "node-selector-typo": Expected("zone=eats.*east", "zone=east"),
    "node-taint": Expected("dedicated=gpu:NoSchedule", "tolerate dedicated=gpu"),
    "operator-of-another-language": Expected("= is no operator, == is", 'model == "a100" && '),
    "quota-of-claims": Expected("quota few allows 0", "raise quota few"),
    "quota-of-cpu": Expected("quota small allows 1", "quota small"),
    "spread-over-a-label-nobody-has": Expected(
        "topology.kubernetes.io/zone, which no node has$", "ScheduleAnyway"
    ),
    "two-values-at-once": Expected('model cannot be "a100" and "h100"', r'in \["a100", "h100"\]'),
    "two-mistakes": Expected("modle does not exist.*model", "model instead of modle"),
    "value-in-another-case": Expected('model "A100".*"a100"', '"a100"'),
    "value-that-nobody-has": Expected('no device has model "h200"', '"a100"'),
    "version-as-string": Expected(
        "driverVersion is the version 1.2.3, not the string", 'semver\\("1.2.3"\\)'
    ),
    "version-of-two-numbers": Expected('"1.2".*is no version', r'semver\("1.2.0"\)'),
    "version-too-new": Expected("driverVersion 2.0.0.*1.2.3", "1.2.3 instead of 2.0.0"),
    # Drivers that name a fact differently.
    "bridge-by-values": Expected("gpu.nvidia.com/rack.*dra.net/location", "derive .*location"),
    "bridge-name-of-some": Expected("gpu.nvidia.com/numa", r"derive .*has\(.*numa"),
    "bridge-own-domain": Expected("resource.kubernetes.io/pcieRoot", "derive .*from resource.*nic"),
    "bridge-prefixed": Expected("dra.net/numaNode", 'derive .*"node" \\+ string'),
    "bridge-three-drivers": Expected(
        "dra.net/numaNode.*dra.cpu/numaNodeID", "derive .*dra.net/numaNode.*dra.cpu/numaNodeID"
    ),
    "bridge-topology-string": Expected("in gpu.nvidia.com/topology", r'topology.find\("numa'),
    "bridge-two-drivers": Expected(
        "gpu.nvidia.com/numa,.*dra.net/numaNode", "derive resource.kubernetes.io/numaNode from "
    ),
    "match-alternatives": Expected("gpu/two, gpu/one", "derive .*gpu/two.*gpu/one"),
    # Types.
    "derived-other-type": Expected(r'"0" \(string\).*0 \(int\)', r"derive .*string\("),
    "match-int-and-string": Expected(r'"0" \(string\).*0 \(int\)', r"derive .*string\("),
    "match-list-types": Expected(r'\["0", "1"\] \(list of string\).*0 \(int\)', r"string\("),
    "match-version-and-string": Expected(
        r'1.2.0 \(version\).*"1.2.0" \(string\)', r"derive .*semver\("
    ),
    # Derived attributes.
    "derived-conversion": Expected("fails on device gpu-0: type conversion", r"matches\("),
    "derived-empty-list": Expected("empty list on all 2 devices", "derive .*gpu.nvidia.com/numa"),
    "derived-index": Expected("gpu-0: index out of bounds", r"size\(.*\) > 1 \?"),
    "derived-missing-key": Expected(
        "gpu-0: no such key: numa; 1 of 2 devices", r"has\(.*numa\) \?"
    ),
    "derived-mixed-list": Expected("list element at index 1", "derive .*gpu.nvidia.com/numa"),
    "derived-name-differs": Expected(
        "numaNode .*did you mean example.com/numa", "example.com/numa "
    ),
    "derived-name-typo": Expected("numanode.*did you mean numaNode", "numaNode instead"),
    "derived-on-two-of-three": Expected(
        "request cpu .*only request gpu, nic", "dra.cpu/numaNodeID"
    ),
    "derived-optional": Expected("gives an optional value", r"\?numa.orValue\("),
    "derived-quantity": Expected("gives a quantity", r"asInteger\("),
    "derived-shadows": Expected("8, 9, which hides the published 0, 1", "remove the derived"),
    "derived-type-error": Expected("no such overload", r'"numa-" \+ string\('),
    "derived-wrong-kind": Expected("gives a double", r'write device.attributes\["gpu.*numa$'),
    # Values.
    "constraint-field-typo": Expected(
        "no field matchAttributes.*matchAttribute", "matchAttribute "
    ),
    "constraint-hyphen": Expected("numa-node .*did you mean .*numaNode", "numaNode instead"),
    "constraint-without-domain": Expected(
        "numaNode .*did you mean resource.kubernetes.io/numaNode", "resource.*/numaNode instead"
    ),
    "match-another-name-of-all": Expected(
        "numaNodeID: did you mean resource.kubernetes.io/numaNode", "resource.*numaNode instead"
    ),
    "constraint-unknown-request": Expected(
        "request nics, .*did you mean nic", "nic instead of nics"
    ),
    "distinct-missing": Expected("2 devices with different .*only 1 has it", "ask for 1 "),
    "distinct-overlapping-lists": Expected(r'overlap: \["a", "b"\], \["b", "c"\]', "ask for 1 "),
    "distinct-too-few-values": Expected("3 devices .*only 2 values exist: 0, 1", "ask for 2 "),
    "distinct-typo": Expected("borad.*board. 2 of 2 devices", "board instead of"),
    "match-all-devices": Expected("wants 2 .*at most 1 has the same", "give up the constraint"),
    "match-attribute-of-one-driver": Expected("only devices of driver gpu.nvidia.com", "give up"),
    "match-coarser-fact": Expected('"pci0000:00".*"pci0000:18"', "compare .*numaNode instead"),
    "match-domain-typo": Expected("k8s.io/numaNode.*did you mean resource", "resource.*instead"),
    "match-lists-never-meet": Expected(r"gpu has \[0, 1\], nic has \[2, 3\]", "give up"),
    "match-missing-on-some": Expected("wants 3 .*only 2 of 4 have it", "ask for 2 instead of 3"),
    "match-only-some-requests": Expected("request nic .*board", "only for request gpu"),
    "match-requests-share": Expected("a, b want 4 .*at most 3", "ask for 1 instead of 2"),
    "match-rest-in-use": Expected(
        "gpu has 1, nic has 0; gpu-0 in use by claim held", "wait", ADVICE
    ),
    "match-rest-tainted": Expected("gpu-0 tainted example.com/reserved", "tolerate .*reserved"),
    "match-root-of-cpu": Expected(
        "request cpu .*pcieRoot", "numaNode instead .*derive .*numaNodeID"
    ),
    "match-two-constraints": Expected("pcieRoot and .*numaNode together", "give up"),
    "match-typo-of-standard": Expected("numanode.*did you mean .*numaNode", "numaNode instead of"),
    "match-values-never-meet": Expected("gpu has 0, nic has 1", "give up the constraint"),
}
SITUATIONS = Situations(FOLDER, EXPECTED)


def test_every_situation_has_its_expectation() -> None:
    SITUATIONS.check_names()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_cause_is_named_and_the_first_fix_helps(name: str) -> None:
    SITUATIONS.check_answer(name)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_change_that_is_offered_is_valid_and_places_the_pod(name: str) -> None:
    SITUATIONS.check_changes(name)
