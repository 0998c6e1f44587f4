"""A podman to try the runtime with: the real one, with storage and settings of its own.

It is the machine's, or the one that `dev.py test` unpacks. Where containers cannot be run at all,
as within some others, the tests that need one are skipped and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from dev import PODMAN

IMAGE = "localhost/busybox:1"
APPLETS = ("sh", "cat", "echo", "env", "false", "ls", "sleep", "test", "true")
# No more than any machine allows: some take the right away to have more.
SETTINGS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/tmp"
{programs}
"""
PROGRAMS = """
conmon_path = ["{conmon}"]
runtime = "runc"
[engine.runtimes]
runc = ["{runc}"]
"""


class NoPodmanError(Exception):
    """Containers cannot be run by podman here; the text says why."""


def make_podman(folder: Path) -> list[str]:
    """Return a command for a podman that has one image and no containers."""
    unpacked = PODMAN / "usr" / "bin" / "podman"
    podman = str(unpacked) if unpacked.exists() else shutil.which("podman")
    busybox = PODMAN / "bin" / "busybox"
    if podman is None or not busybox.exists():
        raise NoPodmanError("there is no podman, or no static busybox for an image")
    command = _command(folder, podman, is_unpacked=unpacked.exists())
    _run([*command, "import", str(_image(folder, busybox)), IMAGE])
    _run([*command, "run", "--rm", "--network=host", IMAGE, "/bin/true"])
    return command


def _command(folder: Path, podman: str, *, is_unpacked: bool) -> list[str]:
    programs = ""
    libraries: list[str] = []
    if is_unpacked:
        found = sorted({str(path.parent) for path in PODMAN.glob("**/lib*.so.*")})
        libraries = [f"LD_LIBRARY_PATH={':'.join(found)}"]
        conmon = _with(libraries[0], PODMAN / "usr/bin/conmon", folder / "conmon")
        programs = PROGRAMS.format(conmon=conmon, runc=PODMAN / "usr/sbin/runc")
    settings = folder / "containers.conf"
    settings.write_text(SETTINGS.format(folder=folder, programs=programs))
    policy = folder / ".config" / "containers" / "policy.json"
    policy.parent.mkdir(parents=True)
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    environment = [f"HOME={folder}", f"CONTAINERS_CONF={settings}", *libraries]
    storage = [f"--root={folder}/storage", f"--runroot={folder}/run", "--storage-driver=vfs"]
    return ["env", *environment, podman, *storage]


def _with(environment: str, program: Path, path: Path) -> Path:
    """Return a program with an environment that podman does not pass on.

    When a container ends, conmon calls podman again, which must find its libraries then too.
    """
    path.write_text(f'#!/bin/sh\nexec env {environment} {program} "$@"\n')
    path.chmod(0o755)
    return path


def _image(folder: Path, busybox: Path) -> Path:
    path = folder / "image.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(busybox, "bin/busybox")
        for name in APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return path


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise NoPodmanError(f"podman cannot run containers here: {done.stderr.strip()[-500:]}")


def remove_podman(command: list[str], folder: Path) -> None:
    """Remove all that a podman has."""
    line = [*command, "rm", "--all", "--force", "--time=0"]
    subprocess.run(line, check=False, capture_output=True, timeout=60)
    for root, _, _ in os.walk(folder):
        if os.path.ismount(root):
            subprocess.run(["umount", "-l", root], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
