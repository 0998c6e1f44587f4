"""The names of vendors and devices on PCI, from the list that most machines have."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

PLACES = ("/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids")
FILE_BYTES_MAX = 16 << 20


@lru_cache(maxsize=256)
def names_of(vendor_id: str, device_id: str) -> tuple[str, str]:
    """Return the names of a vendor and its device; the ids themselves where there are none.

    line = vendor "  " name  |  TAB device "  " name  |  TAB TAB …
    """
    vendor, device = vendor_id, device_id
    is_ours = False
    for line in _lines():
        if line[:1] not in ("\t", "#", ""):
            if is_ours:
                break
            is_ours = line.startswith(f"{vendor_id.removeprefix('0x')}  ")
            vendor = line[6:] if is_ours else vendor
        elif is_ours and line.startswith(f"\t{device_id.removeprefix('0x')}  "):
            device = line[7:]
    return vendor, device


def _lines() -> list[str]:
    for place in PLACES:
        try:
            with Path(place).open("rb") as file:
                return file.read(FILE_BYTES_MAX).decode(errors="replace").splitlines()
        except OSError:
            continue
    return []
