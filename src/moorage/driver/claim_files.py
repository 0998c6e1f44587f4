"""The files of prepared claims: CDI specs, and device metadata for containers.

    /var/run/cdi/gpu.example.com-claim_<uid>.json   the spec, of kind gpu.example.com/claim
    gpu.example.com/claim=<uid>_<request>_<device>  the CDI id that containers get

    <data>/dra-device-metadata/<namespace>_<claim>/<request>/metadata.json      the metadata
    <cdi>/<driver>_metadata_<uid>_<request>.json                                its mount

The CDI folder is in memory on most machines: it is empty after a reboot, and restored from the
checkpoint.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from moorage.api.cdi import CdiDevice, CdiId, CdiSpec, ContainerEdits, Mount
from moorage.api.codec import encode_json
from moorage.api.device_metadata import (
    ATTRIBUTES_MAX,
    DeviceMetadata,
    DeviceMetadataDevice,
    DeviceMetadataRequest,
)
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION
from moorage.driver.checkpoint import FileSystem, PreparedClaim, edits_of
from moorage.driver.driver import AllocatedDevice, Claim, ClaimName, Prepared
from moorage.driver.errors import DriverError
from moorage.driver.metadata import CLAIMS, ROOT, SUFFIX, TEMPLATES, MetadataError, decode
from moorage.kit.atomic_file import TEMPORARY_SUFFIX
from moorage.kit.paths_beneath import UnsafePathError, check_name

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.:-]")
_UID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,126}[A-Za-z0-9])?", re.ASCII)
LOG = logging.getLogger(__name__)
FOLDER = "dra-device-metadata"


def is_usable_uid(uid: str) -> bool:
    """Return whether a UID can be a part of names of files and CDI devices."""
    return bool(_UID.fullmatch(uid))


def vendor_of(driver: str) -> str:
    """Return the vendor of a driver's CDI devices: its name, since CDI requires a letter first."""
    return driver if driver[:1].isalpha() else f"dra-{driver}"


def kind_of(driver: str) -> str:
    """Return the kind of a driver's CDI devices."""
    return f"{vendor_of(driver)}/claim"


def device_names(uid: str, devices: Iterable[AllocatedDevice]) -> list[str]:
    """Return a unique name for the CDI device of each device."""
    names: list[str] = []
    for device in devices:
        name = _NOT_IN_NAMES.sub("-", f"{uid}_{device.base_request}_{device.name}").rstrip("_.:-")
        number = 2
        while name in names:  # another share, or a device of that name in another pool
            name = f"{name.removesuffix(f'_{number - 1}')}_{number}"
            number += 1
        names.append(name)
    return names


class CdiFiles:
    """Writes and removes the CDI specs of a driver's claims."""

    def __init__(self, driver: str, folder: Path, files: FileSystem) -> None:
        self._kind = kind_of(driver)
        self._prefix = f"{vendor_of(driver)}-claim_"
        self._folder = folder
        self._files = files

    def id_of(self, name: str) -> str:
        """Return the id of a CDI device."""
        return str(CdiId(self._kind, name))

    def path(self, uid: str) -> Path:
        """Return the spec file of a claim."""
        return self._folder / f"{self._prefix}{uid}.json"

    def write(self, claim: PreparedClaim) -> None:
        """Write the spec of a claim that has one, unless it exists unchanged."""
        data = self._encoded(claim)
        path = self.path(claim.uid)
        if data is not None and self._files.read(path) != data:
            # The folder is in memory, and restored at the next start.
            self._files.write(path, data, is_durable=False)

    def remove(self, uid: str) -> None:
        """Remove the spec of a claim, if there is one."""
        self._files.remove(self.path(uid))

    def restore(self, claims: Iterable[PreparedClaim]) -> None:
        """Write missing or changed specs, and remove those without a claim."""
        claims = tuple(claims)
        expected = {self.path(each.uid) for each in claims}
        for name in self._files.names(self._folder):
            path = self._folder / name
            is_spec = name.startswith(self._prefix) and name.endswith(".json")
            is_half = name.startswith(f".{self._prefix}") and name.endswith(TEMPORARY_SUFFIX)
            if is_half or (is_spec and path not in expected):
                self._files.remove(path)
        for each in claims:
            if each.is_complete:
                self.write(each)

    def _encoded(self, claim: PreparedClaim) -> bytes | None:
        devices = tuple(
            CdiDevice(name=each.cdi_name, container_edits=edits_of(each))
            for each in claim.devices
            if each.cdi_name
        )
        return encode_json(CdiSpec.of(self._kind, devices)) if devices else None


# --- device metadata ------------------------------------------------------------------------------


class MetadataWriteError(DriverError):
    """Metadata could not be written; the text says which and why."""


class MetadataFiles:
    """Writes and removes the metadata of a driver's claims.

    Without versions nothing new is written; claims keep the metadata they have.
    """

    def __init__(
        self,
        driver: str,
        data_dir: Path,
        cdi_dir: Path,
        versions: tuple[str, ...],
        files: FileSystem,
    ) -> None:
        self._driver = driver
        self._folder = data_dir / FOLDER
        self._cdi_dir = cdi_dir
        self._versions = versions
        self._files = files

    @property
    def is_on(self) -> bool:
        """Whether claims get metadata."""
        return bool(self._versions)

    def write(self, claim: Claim, prepared: Iterable[Prepared]) -> dict[str, str]:
        """Write the metadata of a claim; return the CDI id of each request's mount."""
        by_request: dict[str, list[Prepared]] = {}
        for each in prepared:
            by_request.setdefault(each.device.request, []).append(each)
        ids = {}
        for request, devices in by_request.items():
            base = request.partition("/")[0]
            value = self._value(claim, 1, _pod_claim_name(claim), request, devices)
            self._files.write(self._path(claim, base), self._encoded(value))
            ids[base] = self._write_mount(claim, base)
        return ids

    def update(self, claim: ClaimName, request: str, prepared: Iterable[Prepared]) -> None:
        """Replace the metadata of a request, as the next generation."""
        base = request.partition("/")[0]
        path = self._path(claim, base)
        data = self._files.read(path)
        if data is None:
            raise MetadataWriteError(f'request "{request}" not found in prepared claim {claim}')
        try:
            before = decode(data)
        except MetadataError as error:
            raise MetadataWriteError(f"decode existing metadata: {path}: {error}") from None
        generation = before.metadata.generation + 1
        value = self._value(claim, generation, before.pod_claim_name, request, prepared)
        self._files.write(path, self._encoded(value))

    def remove(self, claim: ClaimName) -> None:
        """Remove the metadata of a claim, if there is any."""
        self._files.remove_folder(self._claim_folder(claim))
        prefix = f"{self._driver}_metadata_{claim.uid}_"
        for name in self._files.names(self._cdi_dir):
            if name.startswith(prefix) and name.endswith(".json"):
                self._files.remove(self._cdi_dir / name)

    def restore(self, claims: Mapping[str, ClaimName]) -> None:
        """Remove mounts of claims that are gone; write missing ones."""
        prefix = f"{self._driver}_metadata_"
        found = set()
        for name in self._files.names(self._cdi_dir):
            if name.startswith(f".{prefix}") and name.endswith(TEMPORARY_SUFFIX):
                self._files.remove(self._cdi_dir / name)
            elif name.startswith(prefix) and name.endswith(".json"):
                uid, _, request = name[len(prefix) : -len(".json")].partition("_")
                found.add((uid, request))
                if uid not in claims:
                    self._files.remove(self._cdi_dir / name)
        for uid, claim in claims.items():
            for request in self._files.names(self._claim_folder(claim)):
                if (uid, request) not in found:
                    self._restore_mount(claim, request)

    def _restore_mount(self, claim: ClaimName, request: str) -> None:
        try:
            self._write_mount(claim, request)
        except (MetadataError, MetadataWriteError) as error:
            LOG.error("metadata of claim %s, request %s, is lost: %s", claim, request, error)

    # --- content ----------------------------------------------------------------------------------

    def _value(
        self,
        claim: ClaimName,
        generation: int,
        pod_claim_name: str | None,
        request: str,
        prepared: Iterable[Prepared],
    ) -> DeviceMetadata:
        metadata = ObjectMeta(
            name=claim.name, namespace=claim.namespace, uid=claim.uid, generation=generation
        )
        devices = tuple(self._device(each) for each in prepared)
        return DeviceMetadata(
            metadata=metadata,
            pod_claim_name=pod_claim_name,
            requests=(DeviceMetadataRequest(name=request, devices=devices),),
        )

    def _device(self, prepared: Prepared) -> DeviceMetadataDevice:
        attributes = prepared.attributes
        if len(attributes) > ATTRIBUTES_MAX:
            raise MetadataWriteError(
                f"device {prepared.device.name} of pool {prepared.device.pool} has "
                f"{len(attributes)} attributes; {ATTRIBUTES_MAX} are allowed"
            )
        return DeviceMetadataDevice(
            driver=self._driver,
            pool=prepared.device.pool,
            name=prepared.device.name,
            attributes=attributes,
            network_data=prepared.network_data,
        )

    def _encoded(self, value: DeviceMetadata) -> bytes:
        return b"".join(
            encode_json(replace(value, api_version=version)) + b"\n" for version in self._versions
        )

    def _write_mount(self, claim: ClaimName, request: str) -> str:
        """Write the CDI spec that mounts the file of a request."""
        path = self._path(claim, request)
        mount = Mount(
            host_path=str(path),
            container_path=str(self._seen_at(claim, request)),
            options=("ro", "bind"),
        )
        device = CdiDevice(
            name=f"{claim.uid}_{request}", container_edits=ContainerEdits(mounts=(mount,))
        )
        kind = f"{vendor_of(self._driver)}/metadata"
        name = f"{self._driver}_metadata_{claim.uid}_{request}.json"
        spec = CdiSpec.of(kind, (device,))
        self._files.write(self._cdi_dir / name, encode_json(spec), is_durable=False)
        return str(CdiId(kind, device.name))

    def _seen_at(self, claim: ClaimName, request: str) -> Path:
        """Return the path of the file in containers."""
        data = self._files.read(self._path(claim, request))
        pod_claim_name = decode(data).pod_claim_name if data else None
        kind, name = (TEMPLATES, pod_claim_name) if pod_claim_name else (CLAIMS, claim.name)
        return ROOT / kind / _part(name) / _part(request) / f"{self._driver}{SUFFIX}"

    def _claim_folder(self, claim: ClaimName) -> Path:
        return self._folder / _part(f"{claim.namespace}_{claim.name}")

    def _path(self, claim: ClaimName, request: str) -> Path:
        return self._claim_folder(claim) / _part(request) / "metadata.json"


def _part(name: str) -> str:
    """Return a claim, request or annotation that can be one part of a path."""
    try:
        return check_name(name)
    except UnsafePathError as error:
        raise MetadataWriteError(str(error)) from None


def _pod_claim_name(claim: Claim) -> str | None:
    if claim.value is None:
        return None
    return claim.value.metadata.annotations.get(POD_CLAIM_ANNOTATION)
