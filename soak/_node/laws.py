"""Laws of a node, checked from outside, by files alone.

1. A device that is not shared is never prepared for two claims at the same time: by the journals of
   the drivers, which see every call; by their checkpoints, by CDI files, and by the environment of
   processes, each as often as we look.
2. When all pods are gone, nothing of them is left: in journals, checkpoints, CDI files, processes,
   and no claim has devices. The exception is Kubernetes' own: a scheduler that has reserved a
   claim of users and then cannot bind the pod (it was deleted meanwhile) takes back the
   reservation alone. Such a claim keeps its devices until it is used again or deleted.
3. What drivers publish is complete in the end.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from moorage.api.resource.v1 import ResourceClaim, ResourceSlice
from moorage.client.api_client import ApiClient
from moorage.driver.checkpoint import Checkpoint, FileSystem
from moorage.driver.errors import CheckpointError
from soak._node.programs import Site
from soak._node.things import MARK

LOOKS = 3  # files change while we read them: an error must show several times
BETWEEN_S = 0.03

Owned = tuple[str, str]  # a device, and the claim that has it


class BrokenLawError(AssertionError):
    """A law does not hold; the text says which devices and claims."""


def look(site: Site) -> None:
    """Raise BrokenLawError if a device belongs to two claims now, or did according to a journal."""
    for driver in site.drivers:
        held(site, driver)
    sources: dict[str, Callable[[], Iterable[Owned]]] = {
        "checkpoints": lambda: in_checkpoints(site),
        "CDI files": lambda: in_cdi_files(site),
        "processes": lambda: in_processes(site),
    }
    for name, read in sources.items():
        doubles = _doubles(read())
        for _ in range(LOOKS - 1):
            if not doubles:
                break
            time.sleep(BETWEEN_S)
            doubles &= _doubles(read())
        if doubles:
            raise BrokenLawError(f"{name}: devices with two owners: {sorted(doubles)}")


def _doubles(owned: Iterable[Owned]) -> set[tuple[str, frozenset[str]]]:
    owners = defaultdict(set)
    for device, claim in owned:
        owners[device].add(claim)
    return {(device, frozenset(found)) for device, found in owners.items() if len(found) > 1}


# --- who has what -------------------------------------------------------------------------------


def held(site: Site, driver: str) -> dict[str, str]:
    """Return who has which device by a driver's journal, or raise BrokenLawError."""
    owners: dict[str, str] = {}
    for line in _lines(site.journal(driver)):
        verb, claim, *devices = line.split()
        if verb == "unprepare":
            owners = {device: owner for device, owner in owners.items() if owner != claim}
        for device in devices:
            owner = owners.setdefault(device, claim)
            if owner != claim:
                text = f"journal of {driver}: {device} of {owner} prepared for {claim}"
                raise BrokenLawError(text)
    return owners


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def in_checkpoints(site: Site) -> Iterator[Owned]:
    """Yield who has which device by the checkpoints of drivers; shares are devices here, too."""
    for driver in site.drivers:
        checkpoint = Checkpoint(site.checkpoint(driver).parent, FileSystem())
        with suppress(CheckpointError):  # it is just being replaced; drivers handle real damage
            checkpoint.load()
        for claim in checkpoint:
            for device in claim.devices:
                yield f"{driver} {device.name} {device.share_id}", claim.uid


def in_cdi_files(site: Site) -> Iterator[Owned]:
    """Yield who has which device by CDI files."""
    for path in site.cdi.glob("*.json"):
        for device in _json(path).get("devices", ()):
            yield from _lamps(device["containerEdits"].get("env", ()))


def in_processes(site: Site) -> Iterator[Owned]:
    """Yield who has which device by the environment of processes."""
    for environment in containers(site):
        yield from _lamps(environment)


def containers(site: Site) -> Iterator[list[str]]:
    """Yield the environments of processes of containers of this site."""
    mark = f"{MARK}={site.folder}"
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            environment = path.read_bytes().decode(errors="replace").split("\0")
            if mark in environment:
                yield environment


def in_agent(site: Site) -> list[str]:
    """Return the claims that the agent has written down."""
    data = _json(site.root / "dra_manager_state").get("Data", "{}")
    return [each["ClaimName"] for each in json.loads(data).get("ClaimInfoStateList") or ()]


def _lamps(environment: Iterable[str]) -> Iterator[Owned]:
    for variable in environment:
        if variable.startswith("LAMP_"):
            device, _, claim = variable.partition("=")
            yield device, claim


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    return found


# --- the end ------------------------------------------------------------------------------------


async def leaks(site: Site, client: ApiClient) -> list[str]:
    """Return leftovers although there are no pods."""
    found = [f"prepared by {name}: {held(site, name)}" for name in site.drivers if held(site, name)]
    found += [f"in checkpoints: {each}" for each in in_checkpoints(site)]
    found += [f"at the agent: {each}" for each in in_agent(site)]
    found += [f"CDI file {path.name}" for path in site.cdi.iterdir()]
    found += [f"process with {_shown(each)}" for each in containers(site)]
    found += [f"folder of pod {path.name}" for path in _children(site.root / "pods")]
    found += [f"container {path}" for path in _children(site.root / "containers" / "containers")]
    for claim in (await client.list(ResourceClaim)).values:
        is_held = claim.status.allocation is not None and not is_unreserved(claim)
        if is_held or claim.metadata.owner_references:
            found.append(f"claim {claim.metadata.name} with devices: {claim.status}")
    return found


def is_unreserved(claim: ResourceClaim) -> bool:
    """Whether a claim of users has devices and no pod: the scheduler took back its reservation."""
    is_users = not claim.metadata.owner_references
    return is_users and claim.status.allocation is not None and not claim.status.reserved_for


def _shown(environment: list[str]) -> str:
    return " ".join(each for each in environment if each.startswith(("LAMP_", "HOSTNAME")))


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


async def missing_devices(client: ApiClient, driver: str, count: int) -> str:
    """Return the errors in a driver's published slices; empty if there are none."""
    slices = [
        each for each in (await client.list(ResourceSlice)).values if each.spec.driver == driver
    ]
    generations = {each.spec.pool.generation for each in slices}
    counts = {each.spec.pool.resource_slice_count for each in slices}
    names = sorted(device.name for each in slices for device in each.spec.devices)
    wanted = sorted(f"lamp-{number}" for number in range(count))
    if len(generations) != 1 or counts != {len(slices)} or names != wanted:
        return f"{driver}: {len(slices)} slices of {counts}, generations {generations}: {names}"
    return ""
