"""The plugin for krew: an archive that it installs, and the manifest that describes it.

krew installs programs, but Moorage is a Python package. So the archive contains a launcher, the
wheel, and the lock file with the hashes of the wheel's dependencies.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from pathlib import Path
from string import Template

LAUNCHER = "kubectl-moor"
_VERSION = re.compile(r"(?P<release>\d+\.\d+\.\d+)(?:\.?(?P<mark>a|b|rc|dev)(?P<number>\d+))?")


def archive_name(version: str) -> str:
    """Return the name of the archive of a version."""
    return f"moorage-krew-{version}.tar.gz"


def krew_archive(root: Path, wheel: tuple[str, bytes], *, version: str, epoch_s: int) -> bytes:
    """Return the archive for a wheel, given by name and content; equal files give equal bytes."""
    launcher = (root / "deploy" / "krew" / LAUNCHER).read_text(encoding="utf-8")
    files = {
        "LICENSE": (root / "LICENSE").read_bytes(),
        LAUNCHER: launcher.replace("${VERSION}", version).encode(),
        wheel[0]: wheel[1],
        "requirements.txt": (root / "requirements" / "run.txt").read_bytes(),
    }
    made = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=made, mtime=epoch_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), epoch_s
            entry.mode = 0o755 if name == LAUNCHER else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def krew_manifest(root: Path, archive: bytes, *, version: str, repository: str) -> str:
    """Return the manifest of a version, whose release has the archive."""
    release = f"{repository}/releases/download/v{version}"
    values = {
        "VERSION": semantic_version(version),
        "HOMEPAGE": repository,
        "URI": f"{release}/{archive_name(version)}",
        "SHA256": hashlib.sha256(archive).hexdigest(),
    }
    template = (root / "deploy" / "krew" / "moor.yaml").read_text(encoding="utf-8")
    return Template(template).substitute(values)


def semantic_version(version: str) -> str:
    """Return a Python version in the form that krew needs: `v0.1.0-dev.0` for `0.1.0.dev0`."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError(f"{version} is no version that krew takes")
    release, mark, number = found["release"], found["mark"], found["number"]
    return f"v{release}-{mark}.{number}" if mark else f"v{release}"
