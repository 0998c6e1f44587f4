"""Boards and claims for the tests of hardware."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from uuid import uuid4

from msgspec.structs import replace

from moorage.allocator import Allocated, AllocationOutcome, Inventory, allocate
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CapacityRequirements,
    Device,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceSlice,
)
from moorage.api.timestamp import Timestamp
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.catalogue import Catalogue, Fleet

NOW = Timestamp(datetime(2026, 6, 1, tzinfo=UTC))
CATALOGUE = Catalogue()


@cache
def fleet_of(text: str, form: NumaNodeForm = NumaNodeForm.LIST) -> Fleet:
    return CATALOGUE.fleet(text, form)


def devices_of(text: str, driver: str, form: NumaNodeForm = NumaNodeForm.LIST) -> list[Device]:
    slices = (each for each in fleet_of(text, form).slices if each.spec.driver == driver)
    return [device for each in slices for device in each.spec.devices or ()]


def claim(
    name: str, requests: dict[str, str], attribute: str, *, cpus: int | None = None
) -> ResourceClaim:
    """Return a claim of one device a request, of its class, that all match in an attribute."""
    capacity = {"dra.cpu/cpu": Quantity.from_int(cpus)} if cpus else {}
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(
                requests=tuple(
                    DeviceRequest(
                        name=request,
                        exactly=ExactDeviceRequest(
                            device_class_name=class_,
                            allocation_mode="ExactCount",
                            count=1,
                            capacity=CapacityRequirements(requests=capacity)
                            if class_ == "dra.cpu"
                            else None,
                        ),
                    )
                    for request, class_ in requests.items()
                ),
                constraints=(
                    DeviceConstraint(requests=tuple(requests), match_attribute=attribute),
                ),
            )
        ),
    )


class Bench:
    """Allocates claims on the first machine of a fleet, one after the other."""

    def __init__(self, fleet: Fleet, slices: Iterable[ResourceSlice] | None = None) -> None:
        self._node = fleet.nodes[0]
        self._inventory = Inventory()
        for class_ in fleet.classes:
            self._inventory.put_class(class_)
        for each in fleet.slices if slices is None else slices:
            self._inventory.put_slice(each)

    def ask(self, wanted: ResourceClaim) -> AllocationOutcome:
        return allocate(self._inventory, self._node, [wanted])

    def give(self, wanted: ResourceClaim) -> dict[str, str]:
        """Return the device of each request, taken."""
        answer = self.ask(wanted)
        assert isinstance(answer, Allocated), answer
        (result,) = answer.results(new_share_id=lambda: str(uuid4()))
        self._inventory.put_claim(replace(wanted, status=ResourceClaimStatus(allocation=result)))
        return {each.request: each.device for each in result.devices.results}
