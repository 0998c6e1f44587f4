"""Containers read the device metadata of drivers, in the first version they know."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.cdi import CdiId
from moorage.api.device_metadata import API_VERSION, V1ALPHA1
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim
from moorage.client.api_client import ApiClient
from moorage.driver import Claim, ClaimName, DeviceAttribute, Prepared, PrepareError
from moorage.driver.checkpoint import FileSystem
from moorage.driver.claim_files import MetadataFiles, MetadataWriteError
from moorage.driver.driver import AllocatedDevice
from moorage.driver.errors import StartError
from moorage.driver.metadata import MetadataError, decode, read
from moorage.driver.serving import serving
from tests.driver.stage import NAME, NODE, Blinkers, Kubelet, make_claim, played, settings_in


class Telling(Blinkers):
    """A driver that says which colour its devices have."""

    def prepare(self, claim: Claim) -> list[Prepared]:
        return [told(each, each.name) for each in claim.devices]


def told(device: AllocatedDevice, colour: str) -> Prepared:
    return Prepared(device, attributes={"colour": DeviceAttribute(string_value=colour)})


class Meeting(FileSystem):
    """Files that two read at the same time, if they can."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)

    def read(self, path: Path) -> bytes | None:
        found = super().read(path)
        if path.name == "metadata.json":
            with suppress(threading.BrokenBarrierError):
                self._barrier.wait(timeout=0.2)
        return found


def mounts(folder: Path) -> dict[str, Any]:
    """Return the mounts of all specs by the id of their device."""
    found = {}
    for path in (folder / "cdi").glob("*.json"):
        spec = json.loads(path.read_text())
        for device in spec["devices"]:
            (mount,) = device["containerEdits"]["mounts"]
            found[str(CdiId(spec["kind"], device["name"]))] = mount
    return found


def in_container(folder: Path, mount: Any) -> Path:
    """Show a file where a container would see it; return the root of the container."""
    root = folder / "container"
    seen = root / mount["containerPath"].lstrip("/")
    seen.parent.mkdir(parents=True, exist_ok=True)
    if not seen.exists():
        seen.symlink_to(mount["hostPath"])
    return root / "var/run/kubernetes.io/dra-device-attributes"


@played
async def test_a_container_reads_what_the_driver_wrote(folder: Path, client: ApiClient) -> None:
    claim = await make_claim(client, "lamp", "a=red", "a=green", "b/small=blue")
    settings = settings_in(folder, metadata=(API_VERSION, V1ALPHA1))
    async with serving(Telling(), settings, client) as running:
        assert running.socket is not None
        uid = claim.metadata.uid
        red, green, blue = (await Kubelet(running.socket).prepare(claim))[uid]
        assert list(red.cdi_device_ids) == [f"{NAME}/metadata={uid}_a"]
        assert list(green.cdi_device_ids) == []
        assert list(blue.cdi_device_ids) == [f"{NAME}/metadata={uid}_b"]
        for mount in mounts(folder).values():
            assert mount["options"] == ["ro", "bind"]
            root = in_container(folder, mount)
        found = read("lamp", "a", driver=NAME, root=root)
        assert (found.metadata.uid, found.metadata.generation) == (uid, 1)
        (request,) = found.requests
        assert [(d.driver, d.pool, d.name) for d in request.devices] == [
            (NAME, NODE, "red"),
            (NAME, NODE, "green"),
        ]
        (request,) = read("lamp", "b", root=root).requests
        assert request.name == "b/small"
        await Kubelet(running.socket).unprepare(claim)
        assert mounts(folder) == {}
        with pytest.raises(MetadataError, match=r"open metadata file"):
            read("lamp", "a", driver=NAME, root=root)


@played
async def test_claims_of_templates_are_found_by_their_name_in_the_pod(
    folder: Path, client: ApiClient
) -> None:
    claim = await make_claim(client, "x", "a=red", annotations={POD_CLAIM_ANNOTATION: "light"})
    async with serving(Telling(), settings_in(folder, metadata=(API_VERSION,)), client) as running:
        assert running.socket is not None
        await Kubelet(running.socket).prepare(claim)
        (mount,) = mounts(folder).values()
        found = read("light", "a", from_template=True, root=in_container(folder, mount))
        assert found.pod_claim_name == "light"


@pytest.mark.parametrize("name", ["/etc", "..", "../../../../etc", "a/b", "a\0b", "x" * 300])
def test_a_name_in_an_annotation_is_no_path(name: str, tmp_path: Path) -> None:
    """Users write annotations of their claims; containers see the file where it belongs, or not."""
    files = MetadataFiles(NAME, tmp_path / "data", tmp_path / "cdi", (API_VERSION,), FileSystem())
    metadata = ObjectMeta(name="x", annotations={POD_CLAIM_ANNOTATION: name})
    device = AllocatedDevice("a", NODE, "red")
    claim = Claim("uid", "default", "x", (device,), ResourceClaim(metadata=metadata))
    with pytest.raises(MetadataWriteError, match="cannot be the name of a file"):
        files.write(claim, [Prepared(device)])
    assert not (tmp_path / "cdi").exists()


@pytest.mark.parametrize("request_", ["..", ".", "a\0b", "x" * 300])
def test_a_request_whose_name_is_a_path_gets_no_file(request_: str, tmp_path: Path) -> None:
    files = MetadataFiles(NAME, tmp_path / "data", tmp_path / "cdi", (API_VERSION,), FileSystem())
    device = AllocatedDevice(request_, NODE, "red")
    claim = Claim("uid", "default", "x", (device,))
    with pytest.raises(MetadataWriteError, match="cannot be the name of a file"):
        files.write(claim, [Prepared(device)])
    with pytest.raises(MetadataWriteError, match="cannot be the name of a file"):
        files.update(claim, request_, [Prepared(device)])
    assert list(tmp_path.iterdir()) == []


@played
async def test_updates_are_further_generations(folder: Path, client: ApiClient) -> None:
    claim = await make_claim(client, "x", "a=red", annotations={POD_CLAIM_ANNOTATION: "light"})
    name = ClaimName(claim.metadata.uid, "default", "x")
    device = AllocatedDevice("a", NODE, "red")
    async with serving(Telling(), settings_in(folder, metadata=(API_VERSION,)), client) as running:
        assert running.socket is not None
        with pytest.raises(PrepareError, match="claim default/x is not prepared"):
            await running.update_metadata(name, "a", [told(device, "pink")])
        await Kubelet(running.socket).prepare(claim)
        with pytest.raises(MetadataWriteError, match='request "b" not found in prepared claim'):
            await running.update_metadata(name, "b", [told(device, "pink")])
        await running.update_metadata(name, "a", [told(device, "pink")])
        (mount,) = mounts(folder).values()
        found = decode(Path(mount["hostPath"]).read_bytes())
        assert (found.metadata.generation, found.pod_claim_name) == (2, "light")
        attributes = found.requests[0].devices[0].attributes
        assert attributes["colour"].string_value == "pink"


@played
async def test_updates_at_the_same_time_are_made_one_after_the_other(
    folder: Path, client: ApiClient
) -> None:
    claim = await make_claim(client, "x", "a=red")
    name = ClaimName(claim.metadata.uid, "default", "x")
    device = AllocatedDevice("a", NODE, "red")
    settings = settings_in(folder, metadata=(API_VERSION,))
    async with serving(Telling(), settings, client, files=Meeting()) as running:
        assert running.socket is not None
        await Kubelet(running.socket).prepare(claim)
        await asyncio.gather(
            *(running.update_metadata(name, "a", [told(device, each)]) for each in ("pink", "grey"))
        )
        (mount,) = mounts(folder).values()
        assert decode(Path(mount["hostPath"]).read_bytes()).metadata.generation == 3


@played
async def test_a_claim_that_is_being_undone_gets_no_update(folder: Path, client: ApiClient) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    class Slow(Telling):
        async def unprepare(self, claim: ClaimName) -> None:  # type: ignore[override]
            begun.set()
            await may_end.wait()

    claim = await make_claim(client, "x", "a=red")
    name = ClaimName(claim.metadata.uid, "default", "x")
    async with serving(Slow(), settings_in(folder, metadata=(API_VERSION,)), client) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await kubelet.prepare(claim)
        undoing = asyncio.create_task(kubelet.unprepare(claim))
        await begun.wait()
        with pytest.raises(PrepareError, match="claim default/x is not prepared"):
            await running.update_metadata(name, "a", [])
        may_end.set()
        await undoing


@played
async def test_an_instance_updates_what_another_prepared(folder: Path, client: ApiClient) -> None:
    claim = await make_claim(client, "x", "a=red")
    name = ClaimName(claim.metadata.uid, "default", "x")
    old, new = (
        settings_in(folder, metadata=(API_VERSION,), pod_uid=uid) for uid in ("uid-1", "uid-2")
    )
    async with (
        serving(Telling(), old, client) as first,
        serving(Telling(), new, client) as second,
    ):
        assert first.socket is not None
        await Kubelet(first.socket).prepare(claim)
        await second.update_metadata(name, "a", [])
        (mount,) = mounts(folder).values()
        assert decode(Path(mount["hostPath"]).read_bytes()).metadata.generation == 2


@played
async def test_mounts_come_back_after_a_start_of_the_machine(
    folder: Path, client: ApiClient
) -> None:
    claim = await make_claim(client, "lamp", "a=red")
    settings = settings_in(folder, metadata=(API_VERSION,))
    async with serving(Telling(), settings, client) as running:
        assert running.socket is not None
        await Kubelet(running.socket).prepare(claim)
    before = mounts(folder)
    for path in (folder / "cdi").iterdir():
        path.unlink()
    async with serving(Telling(), replace(settings, boot_id="boot-2"), client):
        assert mounts(folder) == before


@played
async def test_switched_off_new_claims_get_none_and_old_ones_keep_theirs(
    folder: Path, client: ApiClient
) -> None:
    old, new = await make_claim(client, "old", "a=red"), await make_claim(client, "new", "a=green")
    async with serving(Telling(), settings_in(folder, metadata=(API_VERSION,)), client) as running:
        assert running.socket is not None
        await Kubelet(running.socket).prepare(old)
    before = mounts(folder)
    async with serving(Telling(), settings_in(folder), client) as running:
        assert running.socket is not None
        kubelet = Kubelet(running.socket)
        await kubelet.prepare(new)
        assert mounts(folder) == before
        await kubelet.unprepare(old)
        assert mounts(folder) == {}


@played
async def test_a_claim_is_prepared_without_metadata_if_it_must(
    folder: Path, client: ApiClient
) -> None:
    class Verbose(Blinkers):
        def prepare(self, claim: Claim) -> list[Prepared]:
            many = {f"a{n}": DeviceAttribute(int_value=n) for n in range(33)}
            return [Prepared(each, attributes=many) for each in claim.devices]

    claim = await make_claim(client, "lamp", "a=red")
    settings = settings_in(folder, metadata=(API_VERSION,))
    async with serving(Verbose(), settings, client) as running:
        assert running.socket is not None
        (device,) = (await Kubelet(running.socket).prepare(claim))[claim.metadata.uid]
        assert list(device.cdi_device_ids) == []


@pytest.mark.parametrize(
    ("versions", "fact"),
    [
        ((V1ALPHA1,), "the latest metadata version is .*v1beta1 and must be enabled"),
        (("v7",), 'metadata version "v7" is not supported'),
    ],
)
def test_versions_must_be_known_and_the_latest_be_there(
    versions: tuple[str, ...], fact: str
) -> None:
    with pytest.raises(StartError, match=fact):
        settings_in(Path("/tmp"), metadata=versions).check()


KNOWN = (
    b'{"kind":"DeviceMetadata","apiVersion":"metadata.resource.k8s.io/v1alpha1",'
    b'"metadata":{"name":"a"}}'
)
LATER = b'{"kind":"DeviceMetadata","apiVersion":"metadata.resource.k8s.io/v9","shape":[1]}'


def test_the_first_known_version_wins() -> None:
    found = decode(LATER + b"\n" + KNOWN + b"{ this is never read")
    assert (found.api_version, found.metadata.name) == (API_VERSION, "a")


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b"", "no metadata objects found in stream"),
        (b" \n ", "no metadata objects found in stream"),
        (LATER, "no compatible metadata version found in stream .unknown versions: .*/v9."),
        (b"{", "read metadata object from stream"),
        (b"\xff", "read metadata object from stream"),
        (b"{}", "it has no kind and apiVersion"),
        (b"[1]", "decode metadata object"),
        (KNOWN.replace(b'{"name":"a"}', b"7"), "decode metadata.resource.k8s.io/v1alpha1: "),
        (KNOWN.replace(b'"DeviceMetadata"', b'"Pod"'), "Pod is no DeviceMetadata"),
    ],
)
def test_what_cannot_be_read_is_said(data: bytes, fact: str) -> None:
    with pytest.raises(MetadataError, match=fact):
        decode(data)


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda tail: KNOWN[:-20] + tail))
def test_no_bytes_bring_the_reader_down(data: bytes) -> None:
    with suppress(MetadataError):
        decode(data)


def test_files_of_several_drivers_are_taken_together(tmp_path: Path) -> None:
    folder = tmp_path / "resourceclaims" / "lamp" / "a"
    folder.mkdir(parents=True)
    for driver in ("one", "two"):
        device = {"driver": driver, "pool": "p", "name": "d"}
        value = {
            "kind": "DeviceMetadata",
            "apiVersion": API_VERSION,
            "metadata": {},
            "requests": [{"name": "a", "devices": [device]}],
        }
        (folder / f"{driver}-metadata.json").write_text(json.dumps(value))
    (request,) = read("lamp", "a", root=tmp_path).requests
    assert [each.driver for each in request.devices] == ["one", "two"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "\0"])
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match="is no name of a claim"):
        read(name, "a", root=tmp_path)
