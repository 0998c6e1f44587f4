"""Larger members of the families of perf cases, which defeat a search without foresight.

All are unsatisfiable by construction, in the shapes of Kubernetes' own perf cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance._allocation import Problem, read_problem

FEATURES = (
    "AdminAccess",
    "CompatibilityGroups",
    "ConsumableCapacity",
    "DerivedAttributes",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "FractionalCapacityRange",
    "ListTypeAttributes",
    "OptionalNodeOperations",
    "PartitionableDevices",
    "PrioritizedList",
)
NODE = "node-1"
GPU, NIC = "gpu.example.com", "nic.example.com"
NUMA, PCIE = "resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot"

Tree = dict[str, Any]


def gpu_nic_pairs(pairs: int) -> Problem:
    """Return a problem of pairs at one PCIe root each; the last NIC is at a root of its own."""
    gpus = [device("gpu", n, pairs, root=n) for n in range(pairs)]
    nics = [device("nic", n, pairs, root=n if n < pairs - 1 else 255) for n in range(pairs)]
    requests = [request(f"g{n}", "gpu") for n in range(pairs)]
    requests += [request(f"n{n}", "nic") for n in range(pairs)]
    pairing = [{"matchAttribute": PCIE, "requests": [f"g{n}", f"n{n}"]} for n in range(pairs)]
    return problem([slice_("g", GPU, gpus), slice_("n", NIC, nics)], requests, pairing)


def numa_nodes(devices: int) -> Problem:
    """Return a problem of two NUMA nodes that lack one NIC for the requests on one of them."""
    gpus = [device("gpu", n, devices) for n in range(devices)]
    nics = [device("nic", n, devices) for n in range(devices)]
    requests = [request("gpu", "gpu", devices // 4), request("nic", "nic", devices // 2 + 1)]
    together = [{"matchAttribute": NUMA}]
    return problem([slice_("g", GPU, gpus), slice_("n", NIC, nics)], requests, together)


def fragmented_numa_nodes(group: int) -> Problem:
    """Return a problem in which a NIC of one NUMA node and a GPU of the other are in use."""
    gpus = [device("gpu", n, 2 * group) for n in range(2 * group)]
    nics = [device("nic", n, 2 * group) for n in range(2 * group)]
    requests = [request(f"g{n}", "gpu") for n in range(group)] + [request("nic", "nic", group)]
    used = [allocated("u0", NIC, "nic-0"), allocated("u1", GPU, f"gpu-{group}")]
    together = [{"matchAttribute": NUMA}]
    slices = [slice_("g", GPU, gpus), slice_("n", NIC, nics)]
    return problem(slices, requests, together, used)


def pigeonholes(wanted: int, devices: int, holes: int) -> Problem:
    """Return a problem of more devices in different slots than there are slots."""
    per_hole = devices // holes
    gpus = [plain_gpu(n, slot={"int": n // per_hole}) for n in range(devices)]
    apart = [{"distinctAttribute": f"{GPU}/slot"}]
    return problem([slice_("g", GPU, gpus)], [request("gpu", "gpu", wanted)], apart)


def single_requests(wanted: int, devices: int) -> Problem:
    """Return a problem of more requests than there are devices."""
    gpus = [plain_gpu(n) for n in range(devices)]
    return problem([slice_("g", GPU, gpus)], [request(f"r{n}", "gpu") for n in range(wanted)])


def one_request(wanted: int, devices: int) -> Problem:
    """Return a problem of one request for more devices than there are."""
    gpus = [plain_gpu(n) for n in range(devices)]
    return problem([slice_("g", GPU, gpus)], [request("r", "gpu", wanted)])


# Name of a profile: compute slices, memory in Gi, and the memory slices it may start at and takes.
PROFILES: Mapping[str, tuple[int, int, Sequence[int], int]] = {
    "1g": (1, 10, range(7), 1),
    "1g-me": (1, 10, (0,), 1),
    "1g20": (1, 20, (0, 2, 4, 6), 2),
    "2g": (2, 20, (0, 2, 4), 2),
    "3g": (3, 40, (0, 4), 4),
    "4g": (4, 40, (0,), 4),
    "7g": (7, 80, (0,), 8),
}


def overbooked_mig(gpus: int) -> Problem:
    """Return a problem of partitions that need eight slices of each GPU, which has seven."""
    whole = {"slices": "7", "memory": "80Gi", **{f"ms-{n}": "1" for n in range(8)}}
    sets = [{"name": f"gpu-{gpu}", "counters": counters(whole)} for gpu in range(gpus)]
    devices = [p for gpu in range(gpus) for p in partitions(gpu)]
    requests = [mig_request(f"r{n}", "1g") for n in range(gpus + 1)]
    requests += [mig_request(f"s{n}", "4g") for n in range(gpus)]
    requests.append(mig_request("t", "3g", gpus))
    slices = [
        slice_("cs", GPU, None, slices=2, sharedCounters=sets),
        slice_("d00", GPU, devices, slices=2),
    ]
    return problem(slices, requests)


def partitions(gpu: int) -> list[Tree]:
    """Return the devices into which a GPU can be cut."""
    found = []
    for profile, (slices, memory, starts, length) in PROFILES.items():
        for start in starts:
            taken = {"slices": str(slices), "memory": f"{memory}Gi"}
            taken |= {f"ms-{n}": "1" for n in range(start, start + length)}
            found.append(
                {
                    "name": f"gpu-{gpu}-{profile}-{start}",
                    "attributes": {"profile": {"string": profile}, "parent": {"int": gpu}},
                    "consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": counters(taken)}],
                }
            )
    return found


def too_many_shares(wanted: int) -> Problem:
    """Return a problem of one share more than fit, two on each GPU."""
    capacity = {
        "memory": {
            "value": "10Gi",
            "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}},
        },
        "cores": {
            "value": "100",
            "requestPolicy": {"default": "1", "validValues": ["1", "10", "50", "100"]},
        },
    }
    gpus = [
        {**plain_gpu(n), "allowMultipleAllocations": True, "capacity": capacity}
        for n in range((wanted - 1) // 2)
    ]
    amounts = {"requests": {"memory": "4Gi"}}
    requests = [request(f"r{n}", "gpu", capacity=amounts) for n in range(wanted)]
    return problem([slice_("g", GPU, gpus)], requests)


FAMILIES: Mapping[str, Callable[[], Problem]] = {
    "12 GPU-NIC pairs, one misplaced": lambda: gpu_nic_pairs(12),
    "NUMA 32 × 32": lambda: numa_nodes(32),
    "12 fragmented groups": lambda: fragmented_numa_nodes(12),
    "16 of 30, 15 pigeonholes": lambda: pigeonholes(16, 30, 15),
    "14 requests, 13 devices": lambda: single_requests(14, 13),
    "32 of 31": lambda: one_request(32, 31),
    "4 overbooked MIG GPUs": lambda: overbooked_mig(4),
    "16 shares, 14 fit": lambda: too_many_shares(16),
}

# --- trees --------------------------------------------------------------------------------


def problem(
    slices: list[Tree],
    requests: list[Tree],
    constraints: Sequence[Tree] = (),
    allocated_claims: Sequence[Tree] = (),
) -> Problem:
    """Return the problem of one claim on one node."""
    devices = {"requests": requests, "constraints": list(constraints)}
    claim = {"metadata": {"name": "c0", "namespace": "default"}, "spec": {"devices": devices}}
    return read_problem(
        {
            "features": FEATURES,
            "node": {"metadata": {"name": NODE}},
            "classes": [device_class("gpu", GPU), device_class("nic", NIC)],
            "slices": slices,
            "claims": [claim],
            "allocatedClaims": list(allocated_claims),
        }
    )


def device_class(name: str, driver: str) -> Tree:
    """Return the class of a driver's devices."""
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return {"metadata": {"name": name}, "spec": {"selectors": [selector]}}


def slice_(
    name: str, driver: str, devices: list[Tree] | None, *, slices: int = 1, **fields: Any
) -> Tree:
    """Return a slice of the node's pool."""
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": slices}
    spec = {"driver": driver, "pool": pool, "nodeName": NODE, "devices": devices, **fields}
    return {"metadata": {"name": name}, "spec": spec}


def device(kind: str, number: int, devices: int, *, root: int | None = None) -> Tree:
    """Return a device; the first half is at one NUMA node, the rest at another."""
    return {
        "name": f"{kind}-{number}",
        "attributes": {
            "index": {"int": number},
            "model": {"string": "h100"},
            NUMA: {"int": int(number >= devices // 2)},
            PCIE: {"string": f"pci0000:{8 * number if root is None else 8 * root:02x}"},
        },
    }


def plain_gpu(number: int, **attributes: Tree) -> Tree:
    """Return a GPU that is as good as any other."""
    return {"name": f"gpu-{number}", "attributes": {"index": {"int": number}, **attributes}}


def request(name: str, class_name: str, count: int = 1, **fields: Any) -> Tree:
    """Return a request."""
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": {**exactly, **fields}}


def mig_request(name: str, profile: str, count: int = 1) -> Tree:
    """Return a request for partitions of a profile."""
    expression = f'device.attributes["{GPU}"].profile == "{profile}"'
    return request(name, "gpu", count, selectors=[{"cel": {"expression": expression}}])


def counters(amounts: Mapping[str, str]) -> Tree:
    """Return counters by name."""
    return {name: {"value": amount} for name, amount in amounts.items()}


def allocated(name: str, driver: str, device_name: str) -> Tree:
    """Return a claim that has a device already."""
    result = {"request": "r", "driver": driver, "pool": NODE, "device": device_name}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
