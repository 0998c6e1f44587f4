"""The CDI spec of each prepared claim: a file in the folder of the container runtime.

    /var/run/cdi/gpu.example.com-claim_<uid>.json   kind gpu.example.com/claim
    gpu.example.com/claim=<uid>_<request>_<device>  the id that containers are given

The folder is in memory on most machines: after a start of the machine it is empty, and what is
prepared is written again from the checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from mooring.api.cdi import CdiDevice, CdiId, CdiSpec
from mooring.api.codec import encode_json
from mooring.driver.checkpoint import PreparedClaim, edits_of
from mooring.driver.driver import AllocatedDevice
from mooring.driver.files import TEMPORARY, Files

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.:-]")
_UID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,126}[A-Za-z0-9])?", re.ASCII)


def is_usable_uid(uid: str) -> bool:
    """Tell whether a UID can be a part of names of files and CDI devices."""
    return bool(_UID.fullmatch(uid))


def vendor_of(driver: str) -> str:
    """Return the vendor of a driver's CDI devices: its name; CDI wants a letter first."""
    return driver if driver[:1].isalpha() else f"dra-{driver}"


def kind_of(driver: str) -> str:
    """Return the kind of the CDI devices of a driver's claims."""
    return f"{vendor_of(driver)}/claim"


def device_names(uid: str, devices: Iterable[AllocatedDevice]) -> list[str]:
    """Return a name for the CDI device of each device; no two are the same."""
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
    """Writes and removes the specs of a driver's claims."""

    def __init__(self, driver: str, folder: Path, files: Files) -> None:
        self._kind = kind_of(driver)
        self._prefix = f"{vendor_of(driver)}-claim_"
        self._folder = folder
        self._files = files

    def id_of(self, name: str) -> str:
        """Return the id of a CDI device."""
        return str(CdiId(self._kind, name))

    def path(self, uid: str) -> Path:
        """Return the file of a claim."""
        return self._folder / f"{self._prefix}{uid}.json"

    def write(self, claim: PreparedClaim) -> None:
        """Write the spec of a claim that has one, unless it is there."""
        data = self._encoded(claim)
        path = self.path(claim.uid)
        if data is not None and self._files.read(path) != data:
            # The folder is in memory, and what is missing is written again at the next start.
            self._files.write(path, data, lasts=False)

    def remove(self, uid: str) -> None:
        """Remove the spec of a claim, if there is one."""
        self._files.remove(self.path(uid))

    def restore(self, claims: Iterable[PreparedClaim]) -> None:
        """Write what is missing or another, and remove what no claim has any more."""
        claims = tuple(claims)
        wanted = {self.path(each.uid) for each in claims}
        for name in self._files.names(self._folder):
            path = self._folder / name
            is_spec = name.startswith(self._prefix) and name.endswith(".json")
            is_half = name.startswith(f".{self._prefix}") and name.endswith(TEMPORARY)
            if is_half or (is_spec and path not in wanted):
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
