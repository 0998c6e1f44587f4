"""Builds a release into a folder, and checks it.

1. The name on the package index is free, or ours.
2. The wheel and the sdist are built twice, in two folders; every byte must be the same.
3. twine, check-wheel-contents and pyroma check them; warnings are errors.
4. The plugin for krew, the bill of materials and the checksums are written beside them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from release.index_name import ask_index
from release.krew import archive_name, krew_archive, krew_manifest
from release.metadata_hook import version_of
from release.sbom import sbom
from release.vendored import faults, vendored

ROOT = Path(__file__).parents[1]
BUILD_S_MAX = 300
# For copies without a history, such as an unpacked sdist. It is the earliest time in zip files.
FIRST_EPOCH_S = 315_532_800
PYROMA_BEST = 10
MANIFEST = "moor.yaml"  # of krew
MADE = (MANIFEST, "SHA256SUMS", "sbom.cdx.json")  # besides files that begin as the package
# What pyroma requires and Moorage does not have: the address of a person, and, until pyproject.toml
# has the address of the repository, a URL.
NOT_OURS = ("AuthorEmail", "Url")


class ReleaseError(Exception):
    """The result must not be released."""


def main(arguments: Sequence[str]) -> int:
    """Build and check a release, and return an exit status."""
    parser = argparse.ArgumentParser(prog="release", description="Build what is released.")
    parser.add_argument("--output", metavar="DIR", type=Path, default=ROOT / "dist")
    parser.add_argument("--tools", metavar="DIR", type=Path, required=True)
    offline = "do not ask the package index whose the name is"
    parser.add_argument("--offline", action="store_true", help=offline)
    options = parser.parse_args(arguments)
    try:
        check_name(is_offline=options.offline)
        built = build(epoch_s := epoch())
        check(built, options.tools)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    for old in output.iterdir():
        if old.name.startswith("moorage-") or old.name in MADE:
            old.unlink()
    for name, content in released(built, epoch_s).items():
        (output / name).write_bytes(content)
        print(f"{output / name}: {len(content):,} bytes")
    return 0


def check_name(*, is_offline: bool) -> None:
    """Raise ReleaseError unless the name on the package index is free, or ours."""
    if is_offline:
        print("the package index was not asked whose the name is: this is not for a release")
        return
    project = _pyproject()["project"]
    author = project["authors"][0]["name"]
    answer = ask_index(project["name"], author=author, repository=repository())
    if not answer.may_be_built:
        raise ReleaseError(answer.text)
    print(answer.text)


def epoch() -> int:
    """Return the time for files of a release: SOURCE_DATE_EPOCH, or that of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return FIRST_EPOCH_S
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else FIRST_EPOCH_S


def build(epoch_s: int) -> dict[str, bytes]:
    """Return the sdist and the wheel, which are equal in two builds."""
    first, second = _built(epoch_s), _built(epoch_s)
    differing = sorted(name for name in first if first[name] != second.get(name))
    if differing or first.keys() != second.keys():
        raise ReleaseError(f"two builds differ: {', '.join(differing) or 'in their files'}")
    return first


def _built(epoch_s: int) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="moorage-release-") as folder:
        _run([sys.executable, "-m", "hatchling", "build", "-d", folder], epoch_s=epoch_s)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def check(built: dict[str, bytes], tools: Path) -> None:
    """Raise ReleaseError unless all tools pass."""
    wrong = faults(ROOT)
    if wrong:
        raise ReleaseError("; ".join(wrong))
    with tempfile.TemporaryDirectory(prefix="moorage-release-") as made:
        folder = Path(made)
        for name, content in built.items():
            (folder / name).write_bytes(content)
        (wheel,) = folder.glob("*.whl")
        (sdist,) = folder.glob("*.tar.gz")
        _run([tools / "twine", "check", "--strict", wheel, sdist])
        _run([tools / "check-wheel-contents", "--config", ROOT / "pyproject.toml", wheel])
        skipped = NOT_OURS[: 1 if repository() else 2]
        best = ["--min", str(PYROMA_BEST), "--skip-tests", ",".join(skipped)]
        _run([tools / "pyroma", *best, "--file", sdist])


def repository() -> str:
    """Return the address of the repository, if pyproject.toml has it."""
    address: str = _pyproject()["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    return address.rstrip("/")


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def released(built: dict[str, bytes], epoch_s: int) -> dict[str, bytes]:
    """Return all files of a release: those that were built, derived files, and checksums."""
    (wheel,) = ((name, content) for name, content in built.items() if name.endswith(".whl"))
    version = version_of(ROOT)
    bill = sbom(
        ROOT / "requirements",
        vendored(ROOT),
        version=version,
        wheel_sha256=hashlib.sha256(wheel[1]).hexdigest(),
        epoch_s=epoch_s,
    )
    plugin = krew_archive(ROOT, wheel, version=version, epoch_s=epoch_s)
    files = {**built, archive_name(version): plugin, "sbom.cdx.json": bill.encode()}
    if address := repository():
        manifest = krew_manifest(ROOT, plugin, version=version, repository=address)
        files[MANIFEST] = manifest.encode()
    sums = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(files.items())
    )
    return {**files, "SHA256SUMS": sums.encode()}


def _run(command: list[Path | str], *, epoch_s: int | None = None) -> None:
    environment = dict(os.environ)
    if epoch_s is not None:
        environment["SOURCE_DATE_EPOCH"] = str(epoch_s)
    done = subprocess.run(  # noqa: S603
        list(map(str, command)),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=BUILD_S_MAX,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")
