"""The classes of drivers are made where they are missing."""

from __future__ import annotations

import asyncio
from typing import Any

from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import DeviceClass
from mooring.client.errors import AlreadyExistsError
from mooring.client.writes import Create
from mooring.cluster.classes import make_classes


class Classes:
    """A server that has classes only."""

    def __init__(self, *names: str) -> None:
        self.found = {name: DeviceClass(metadata=ObjectMeta(name=name)) for name in names}

    async def write(self, write: Any) -> Any:
        assert isinstance(write, Create)
        name = write.value.metadata.name
        if name in self.found:
            raise AlreadyExistsError(name, code=409)
        self.found[name] = write.value
        return write.value


def made(there: Classes, *drivers: str) -> list[str]:
    asyncio.run(make_classes(there, drivers))  # type: ignore[arg-type]
    return sorted(there.found)


def test_each_driver_has_its_classes() -> None:
    assert made(Classes(), "cpu", "memory") == ["dra.cpu", "dra.memory"]


def test_a_driver_may_have_several() -> None:
    assert "mig.nvidia.com" in made(Classes(), "nvidia")


def test_a_class_that_is_there_stays_as_it_is() -> None:
    there = Classes("dra.cpu")
    before = there.found["dra.cpu"]
    assert made(there, "cpu", "memory") == ["dra.cpu", "dra.memory"]
    assert there.found["dra.cpu"] is before
