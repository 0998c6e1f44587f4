"""Device metadata that containers read, and functions to read it.

    for request in read("my-claim", "gpu").requests:
        for device in request.devices:
            print(device.name, device.attributes)

Each driver of a request has a file. It holds the same object in several versions, one after the
other; the first known version counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from moorage.api.codec import decode_json
from moorage.api.device_metadata import API_VERSION, V1ALPHA1, DeviceMetadata, DeviceMetadataRequest
from moorage.api.errors import ApiError

ROOT = Path("/var/run/kubernetes.io/dra-device-attributes")
CLAIMS, TEMPLATES = "resourceclaims", "resourceclaimtemplates"
SUFFIX = "-metadata.json"

BYTES_MAX = 4 * 1024 * 1024
FILES_MAX = 1024
KNOWN = (API_VERSION, V1ALPHA1)


class MetadataError(Exception):
    """There is no metadata, or it cannot be read; the text says where and why."""


def read(
    claim: str,
    request: str,
    *,
    driver: str = "",
    from_template: bool = False,
    root: Path | str = ROOT,
) -> DeviceMetadata:
    """Return the metadata of a request's devices, or raise MetadataError.

    For a claim made from a template, `claim` is its name in the pod (`spec.resourceClaims`).
    Without a driver, the devices of all drivers of the request are merged.
    """
    folder = Path(root) / (TEMPLATES if from_template else CLAIMS) / _part(claim) / _part(request)
    if driver:
        return read_file(folder / f"{_part(driver)}{SUFFIX}")
    return read_folder(folder)


def read_folder(folder: Path) -> DeviceMetadata:
    """Return the devices of all drivers that have a file in a folder."""
    try:
        paths = sorted(each for each in folder.iterdir() if each.name.endswith(SUFFIX))
    except OSError as error:
        raise MetadataError(f"no metadata files found in {folder}: {error.strerror}") from None
    if not paths:
        raise MetadataError(f"no metadata files found in {folder}")
    if len(paths) > FILES_MAX:
        raise MetadataError(f"{folder} has {len(paths)} metadata files; {FILES_MAX} are allowed")
    return _merged([read_file(path) for path in paths])


def read_file(path: Path) -> DeviceMetadata:
    """Return the object of a file in the first known version."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise MetadataError(f"open metadata file: {path}: {error.strerror}") from None
    if len(data) > BYTES_MAX:
        raise MetadataError(f"{path}: more than {BYTES_MAX} bytes")
    try:
        return decode(data)
    except MetadataError as error:
        raise MetadataError(f"{path}: {error}") from None


def decode(data: bytes) -> DeviceMetadata:
    """Return the first object of a known version, as the latest version."""
    unknown = []
    for raw in _objects(data):
        try:
            head = msgspec.json.decode(raw, type=_Head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MetadataError(f"decode metadata object: {error}") from None
        if not head.apiVersion or not head.kind:
            raise MetadataError("decode metadata object: it has no kind and apiVersion")
        if head.apiVersion not in KNOWN:
            unknown.append(head.apiVersion[:128])
            continue
        return _decoded(bytes(raw), head)
    if not unknown:
        raise MetadataError("no metadata objects found in stream")
    named = ", ".join(unknown)
    raise MetadataError(
        f"no compatible metadata version found in stream (unknown versions: {named})"
    )


class _Head(Struct):
    apiVersion: str = ""  # noqa: N815  # as in the file
    kind: str = ""


def _decoded(raw: bytes, head: _Head) -> DeviceMetadata:
    if head.kind != "DeviceMetadata":
        raise MetadataError(f"decode {head.apiVersion}: {head.kind[:128]} is no DeviceMetadata")
    try:
        found = decode_json(raw, DeviceMetadata).value
    except ApiError as error:
        raise MetadataError(f"decode {head.apiVersion}: {error}") from None
    return replace(found, api_version=API_VERSION)


def _objects(data: bytes) -> Iterator[Raw]:
    """Yield consecutive JSON objects."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MetadataError(f"read metadata object from stream: {error}") from None
    decoder = json.JSONDecoder()
    at = 0
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise MetadataError(f"read metadata object from stream: {error}") from None
        yield Raw(text[at:end].encode())
        at = end


def _merged(found: list[DeviceMetadata]) -> DeviceMetadata:
    """Return all devices by request, those of the first driver first."""
    requests: dict[str, DeviceMetadataRequest] = {}
    for each in found:
        for request in each.requests:
            before = requests.get(request.name)
            devices = (*before.devices, *request.devices) if before else request.devices
            requests[request.name] = replace(request, devices=devices)
    pod_claim_names = [each.pod_claim_name for each in found if each.pod_claim_name is not None]
    return replace(
        found[0],
        pod_claim_name=pod_claim_names[0] if pod_claim_names else None,
        requests=tuple(requests.values()),
    )


def _part(name: str) -> str:
    """Return a name that can be one part of a path."""
    if not name or "/" in name or name in (".", "..") or "\0" in name:
        raise MetadataError(f"{name[:128]!r} is no name of a claim, a request or a driver")
    return name
