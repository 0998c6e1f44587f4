"""gpu.nvidia.com (kubernetes-sigs/dra-driver-nvidia-gpu): whole GPUs, partitions, or VFIO.

With MIG a GPU is published together with every partition that could be made of it, in one slice
a GPU, and the counters of all GPUs in a slice of their own. Whatever is allocated takes its share
of the GPU's counters, and the memory slices it would be placed on, so that no two overlap.

compute-domain.nvidia.com, of the same project, publishes the channel and the daemon of memory that
machines of a rack share over NVLink.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Counter, CounterSet, Device, DeviceCounterConsumption
from moorage.hardware.attributes import (
    Attributes,
    Capacities,
    DeviceLocation,
    amount,
    flag,
    text,
    version,
    whole,
)
from moorage.hardware.board import MigProfile, NvidiaGpu, PciDevice
from moorage.hardware.machine import Machine, Sheet

DRIVER = "gpu.nvidia.com"
COMPUTE_DOMAIN = "compute-domain.nvidia.com"
# The capacities of a partition by their names in profiles.
CAPACITIES = {
    "memory": "memory",
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy_engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpeg_engines",
    "ofaEngines": "ofa_engines",
}
# A counter is a label, so its name is not the capacity's.
COUNTERS = {
    name: "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)
    for name in CAPACITIES
}


def sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield the GPUs as the board's options say."""
    found = enumerate(machine.devices(NvidiaGpu))
    gpus = [_gpu(machine, index, *each) for index, each in found]
    if machine.board.options.vfio:
        yield Sheet(tuple(gpu.vfio_device() for gpu in gpus))
        return
    divisible = [gpu for gpu in gpus if machine.board.options.mig and gpu.has_partitions]
    yield Sheet(counters=tuple(gpu.counter_set() for gpu in divisible))
    for gpu in divisible:
        yield Sheet((gpu.whole_device(), *gpu.partitions()))
    yield Sheet(tuple(gpu.device() for gpu in gpus if gpu not in divisible))


def compute_domain_sheets(machine: Machine) -> Iterator[Sheet]:
    """Yield the default channel and the daemon, where the board shares memory."""
    if machine.board.options.compute_domains:
        types = ("channel", "daemon")
        found = (Device(f"{each}-0", {"type": text(each), "id": whole(0)}) for each in types)
        yield Sheet(tuple(found))


def partition_name(gpu: int, profile: str, id_: int, start: int) -> str:
    """Return the name of a partition: by its GPU, its profile, and where it is placed."""
    label = profile.replace(".", "").replace("+", "-")
    return f"gpu-{gpu}-mig-{label}-{id_}-{start}"


class Gpu:
    """One published GPU."""

    def __init__(
        self, index: int, uuid: str, model: NvidiaGpu, *, place: DeviceLocation, address: str
    ) -> None:
        self._index = index
        self._uuid = uuid
        self._model = model
        self._place = place
        self._address = address
        self._name = f"gpu-{index}"

    @property
    def has_partitions(self) -> bool:
        """Whether the GPU can be partitioned."""
        return bool(self._model.mig)

    def device(self) -> Device:
        """Return a GPU that cannot be partitioned."""
        return Device(
            name=self._name,
            attributes={**self._attributes("gpu"), "uuid": text(self._uuid)},
            capacity={"memory": amount(self._model.memory)},
        )

    def vfio_device(self) -> Device:
        """Return the GPU for passthrough to a virtual machine."""
        node = self._place.scalar_numa_node(self._address)
        return Device(
            name=f"gpu-vfio-{self._index}",
            attributes={
                **self._place.pci_attributes(self._address),
                **({} if node is None else {"numa": whole(node)}),
                "type": text("vfio"),
                "uuid": text(self._uuid),
                "deviceID": text(self._model.device_id),
                "vendorID": text(self._model.vendor_id),
                "productName": text(self._model.product),
                "iommuFDEnabled": flag(False),
            },
            capacity={"addressableMemory": amount(self._model.memory)},
        )

    # --- MIG ------------------------------------------------------------------------------

    def whole_device(self) -> Device:
        """Return the whole GPU beside its partitions: it consumes all shared counters."""
        return Device(
            name=self._name,
            attributes={**self._attributes("gpu"), "uuid": text(self._uuid)},
            capacity=self._whole(),
            consumes_counters=(self._consumption(self._whole(), range(self._memory_slices)),),
        )

    def partitions(self) -> Iterator[Device]:
        """Yield every partition at every place, by name: the order in which they are tried."""
        for profile in sorted(self._model.mig, key=lambda each: each.name):
            for start in profile.placements:
                yield self._partition(profile, start)

    def existing_partition(self, profile: MigProfile, start: int, uuid: str) -> Device:
        """Return an existing partition, which consumes no counters."""
        made = self._partition(profile, start)
        slices = range(start, start + profile.memory_slices)
        return replace(
            made,
            attributes={**made.attributes, "uuid": text(uuid)},
            capacity={**made.capacity, **{f"memorySlice{each}": amount(1) for each in slices}},
            consumes_counters=(),
        )

    def counter_set(self) -> CounterSet:
        """Return the counters that the partitions share."""
        consumption = self._consumption(self._whole(), range(self._memory_slices))
        return CounterSet(name=self._counter_set_name, counters=consumption.counters)

    def _partition(self, profile: MigProfile, start: int) -> Device:
        slices = range(start, start + profile.memory_slices)
        return Device(
            name=partition_name(self._index, profile.name, profile.id, start),
            attributes={
                **self._attributes("mig"),
                "parentUUID": text(self._uuid),
                "profile": text(profile.name),
            },
            capacity=_capacities(profile),
            consumes_counters=(self._consumption(_capacities(profile), slices),),
        )

    def _consumption(self, capacities: Capacities, slices: range) -> DeviceCounterConsumption:
        counters = {COUNTERS[name]: Counter(value=each.value) for name, each in capacities.items()}
        one = Counter(value=Quantity.from_int(1))
        counters.update({f"memory-slice-{index}": one for index in slices})
        return DeviceCounterConsumption(counter_set=self._counter_set_name, counters=counters)

    def _whole(self) -> Capacities:
        """Return the most that a partition has of everything."""
        each = [_capacities(profile) for profile in self._model.mig]
        most = {name: max(one[name].value for one in each) for name in CAPACITIES}
        return {name: amount(str(value)) for name, value in most.items()}

    @property
    def _memory_slices(self) -> int:
        return max(profile.memory_slices for profile in self._model.mig)

    @property
    def _counter_set_name(self) -> str:
        return f"{self._name}-counter-set"

    def _attributes(self, type_: str) -> Attributes:
        model = self._model
        return {
            **self._place.pci_attributes(self._address),
            "type": text(type_),
            "productName": text(model.product),
            "brand": text(model.brand),
            "architecture": text(model.architecture),
            "cudaComputeCapability": version(model.compute_capability),
            "driverVersion": version(model.driver_version),
            "cudaDriverVersion": version(model.cuda_driver_version),
        }


def _gpu(machine: Machine, index: int, device: PciDevice, model: NvidiaGpu) -> Gpu:
    uuid = f"GPU-{machine.uuid(device.address)}"
    return Gpu(index, uuid, model, place=machine.place, address=device.address)


def _capacities(profile: MigProfile) -> Capacities:
    return {name: amount(getattr(profile, field)) for name, field in CAPACITIES.items()}
