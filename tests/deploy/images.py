"""Images for tests: a base made of this machine's Python, and Moorage's image on it.

No registry can be reached, so the base has what `python:3.11-slim` has of use here: a shell, Python
with pip, and the libraries that both need.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path

from dev import PODMAN, WHEELS, with_pip
from tests.deploy.manifests import ROOT
from tests.node.runtime.podmans import NoPodmanError

BASE = "localhost/python:test"
IMAGE = "localhost/moorage:test"
APPLETS = ("sh", "cat", "chmod", "env", "id", "ls", "mkdir", "sleep", "touch")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
STDLIB = f"usr/local/lib/python{sysconfig.get_python_version()}"
LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "turtledemo", "site-packages", "dist-packages"}
BUILD_S_MAX = 300


def build_image(podman: list[str], folder: Path) -> None:
    """Build Moorage's image as its Containerfile says, or raise NoPodmanError."""
    if not (WHEELS / ".stamp").exists():
        raise NoPodmanError("the wheels are not there")
    _run([*podman, "import", str(_base_archive(folder)), BASE])
    _run(
        [
            *(
                *podman,
                "build",
                "--layers=false",
                "--network=none",
                "--format=oci",
                f"--tag={IMAGE}",
            ),
            *(f"--volume={WHEELS}:/wheels:ro", f"--build-arg=BASE={BASE}"),
            "--build-arg=PIP_OPTIONS=--no-index --find-links=/wheels",
            *("--file", str(ROOT / "deploy" / "image" / "Containerfile"), str(ROOT)),
        ]
    )


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=BUILD_S_MAX)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def _base_archive(folder: Path) -> Path:
    """Write the root of the base image."""
    path = folder / "base.tar"
    python = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    stdlib = Path(sysconfig.get_path("stdlib"))
    pip = Path(_run([with_pip(), "-c", "import pip; print(pip.__path__[0])"]).strip())
    with tarfile.open(path, "w") as archive:
        archive.add(PODMAN / "bin" / "busybox", "bin/busybox")
        for applet in APPLETS:
            _link(archive, f"bin/{applet}", "busybox")
        _link(archive, "usr/bin/env", "/bin/busybox")
        archive.add(python, f"usr/local/bin/{python.name}")
        _link(archive, "usr/local/bin/python3", python.name)
        archive.add(stdlib, STDLIB, filter=_of_stdlib)
        archive.add(pip, f"{STDLIB}/pip", filter=_of_stdlib)
        for library in _libraries([python, *(stdlib / "lib-dynload").glob("*.so")]):
            place = "lib64" if library.name.startswith("ld-linux") else LIBRARIES
            archive.add(os.path.realpath(library), f"{place}/{library.name}")
        _link(archive, "lib", "usr/lib")
        _file(archive, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
        directory = tarfile.TarInfo("tmp")
        directory.type, directory.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(directory)
    return path


def _libraries(programs: Iterable[Path]) -> list[Path]:
    """Return the libraries that programs need, and those of wheels written in C++."""
    found: dict[str, Path] = {}
    for program in programs:
        for line in _run(["ldd", str(program)]).splitlines():
            for word in line.split():
                if word.startswith("/"):
                    found.setdefault(Path(word).name, Path(word))
    for name in ("libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1"):
        found.setdefault(name, Path("/") / LIBRARIES / name)
    return [path for path in found.values() if path.exists()]


def _of_stdlib(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if Path(entry.name).name in LEFT_OUT | {"__pycache__"} or entry.name.endswith(".a"):
        return None
    entry.uid = entry.gid = 0
    entry.mode |= 0o444
    return entry


def _link(archive: tarfile.TarFile, name: str, to: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, to
    archive.addfile(entry)


def _file(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
