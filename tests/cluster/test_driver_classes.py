"""The classes of drivers are made where they are missing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import DeviceClass
from moorage.client.errors import AlreadyExistsError, ForbiddenError
from moorage.client.writes import Create
from moorage.cluster.driver_classes import class_names, driver_names, make_classes, maker_of


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


def made(there: Classes, *names: str) -> list[str]:
    asyncio.run(make_classes(there, driver_names(names)))  # type: ignore[arg-type]
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


class Strict(Classes):
    """A server at which one class is refused."""

    async def write(self, write: Any) -> Any:
        if write.value.metadata.name == "gpu.nvidia.com":
            raise ForbiddenError("not this one", code=403)
        return await super().write(write)


def test_one_that_is_refused_does_not_keep_the_others_from_being_made() -> None:
    there = Strict()
    with pytest.raises(ForbiddenError, match="not this one"):
        made(there, "nvidia", "cpu")
    assert sorted(there.found) == ["dra.cpu", "mig.nvidia.com", "vfio.gpu.nvidia.com"]


def test_a_driver_that_brings_no_classes_has_none() -> None:
    asyncio.run(make_classes(Classes(), ["lamp.example.com"]))  # type: ignore[arg-type]
    assert class_names(["lamp.example.com", "dra.cpu"]) == ["dra.cpu"]


def test_a_class_is_known_by_who_makes_it() -> None:
    classes = ["mig.nvidia.com", "dra.net", "sriovnetwork.k8snetworkplumbingwg.io", "dra.cpu"]
    assert [maker_of(each) for each in classes] == ["nvidia", "net", "net", "cpu"]
    assert maker_of("tpu.google.com") is None
