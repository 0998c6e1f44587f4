"""The software bill of materials of a release, in the form of CycloneDX 1.6.

It lists what Moorage with all extras installs, in the tested versions, and the third-party
files in the wheel. The same lock files and the same wheel give the same bytes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from release.lock_file import Pin, read_lock
from release.vendored import Vendored

NAME = "moorage"
SPACE = uuid.UUID(
    "6f1c0f5e-2f0c-5a53-9a0c-6f6d6f6f7269"
)  # for serial numbers; any constant would do
OPTIONAL_LOCKS = ("server.txt", "drivers.txt")


def sbom(
    locks: Path, others: Sequence[Vendored], *, version: str, wheel_sha256: str, epoch_s: int
) -> str:
    """Return the bill of materials as JSON."""
    required = read_lock(locks / "run.txt")
    pins: dict[str, Pin] = dict(required)
    for name in OPTIONAL_LOCKS:
        for key, pin in read_lock(locks / name).items():
            before = pins.get(key, pin)
            needed_by = tuple(sorted({*before.needed_by, *pin.needed_by}))
            pins[key] = before._replace(needed_by=needed_by)
    product = f"pkg:pypi/{NAME}@{version}"
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(SPACE, wheel_sha256)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch_s, UTC).isoformat().replace("+00:00", "Z"),
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": product,
                "name": NAME,
                "version": version,
                "purl": product,
                "hashes": [{"alg": "SHA-256", "content": wheel_sha256}],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [
            *(_package(pins[name], is_required=name in required) for name in sorted(pins)),
            *map(_file, others),
        ],
        "dependencies": _dependencies(product, pins, others),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _package(pin: Pin, *, is_required: bool) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(pin),
        "name": pin.name,
        "version": pin.version,
        "scope": "required" if is_required else "optional",
        "purl": _purl(pin),
    }
    if licence := _licence(pin.name):
        component["licenses"] = [{"expression": licence}]
    # A version has one file for each platform; which one is installed is decided there.
    properties = [{"name": "moorage:lock:sha256", "value": digest} for digest in pin.sha256s]
    if pin.marker:
        properties.append({"name": "moorage:lock:marker", "value": pin.marker})
    return component | {"properties": properties}


def _licence(name: str) -> str | None:
    """Return the licence that an installed package declares as an expression of SPDX."""
    try:
        declared = metadata(name)
    except PackageNotFoundError:
        return None
    if "License-Expression" not in declared:
        return None
    return declared["License-Expression"]


def _file(each: Vendored) -> dict[str, Any]:
    purl = _file_purl(each)
    return {
        "type": "library",
        "bom-ref": purl,
        "name": each.package,
        "version": each.version,
        "scope": "required",
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": each.sha256}],
        "licenses": [{"expression": each.licence}],
    }


def _dependencies(
    product: str, pins: Mapping[str, Pin], others: Sequence[Vendored]
) -> list[dict[str, Any]]:
    needs: dict[str, list[str]] = {product: [_file_purl(each) for each in others]}
    needs |= {_file_purl(each): [] for each in others}
    needs |= {_purl(pin): [] for _, pin in sorted(pins.items())}
    for _, pin in sorted(pins.items()):
        for user in pin.needed_by:
            needs[product if user == NAME else _purl(pins[user])].append(_purl(pin))
    return [{"ref": ref, "dependsOn": sorted(needed)} for ref, needed in needs.items()]


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


def _file_purl(each: Vendored) -> str:
    return f"pkg:npm/{each.package.replace('@', '%40')}@{each.version}"
