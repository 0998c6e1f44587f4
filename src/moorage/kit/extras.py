"""Optional dependencies: which extra installs which package, and the error where one is missing.

The base installation plans, explains, checks, and talks to clusters. Packages that only servers,
nodes and drivers need come with extras. A module that imports one of them does it so:

    with optional_imports():
        import uvicorn

Without the package, that module and all its importers raise `MissingExtraError`, which names the
extra. gRPC and protobuf are imported this way in `moorage.wire` alone.

Compiled modules are optional, too: the wheel may have been built with them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from moorage import __version__

# extra: the packages it installs, by the names that one imports. `nvidia-ml-py`, which comes with
# `drivers`, is not among them: drivers for other hardware do without it.
EXTRAS = {
    "drivers": ("google.protobuf", "grpc"),
    "server": ("cryptography", "google.protobuf", "grpc", "uvicorn"),
}

COMPILED = "moorage__mypyc"  # the extension that has the code of all compiled modules


def is_compiled() -> bool:
    """Return whether this installation has compiled modules."""
    return _is_installed(COMPILED)


class MissingExtraError(ModuleNotFoundError):
    """A package is not installed that comes with one or more extras of Moorage."""

    def __init__(self, package: str, extras: tuple[str, ...]) -> None:
        commands = " or ".join(map(remedy, extras))
        super().__init__(f"{package} is not installed: {commands}", name=package)
        self.extra = extras[0]


def remedy(*extras: str) -> str:
    """Return the command that installs extras of this installation.

    pip keeps what is installed in that version, wherever it came from, and adds the packages of the
    extras. So the command works where no index has Moorage, and never brings another version.
    """
    return f"pip install 'moorage[{','.join(extras)}]=={__version__}'"


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error that names the extra for a missing module; None if no extra installs it."""
    if isinstance(error, MissingExtraError):
        return error
    for package in sorted({each for brought in EXTRAS.values() for each in brought}):
        # For google.protobuf Python reports google missing, unless another package provides it.
        if error.name in {package, package.partition(".")[0]}:
            extras = (extra for extra, brought in EXTRAS.items() if package in brought)
            return MissingExtraError(package, tuple(extras))
    return None


def require(extra: str) -> None:
    """Raise `MissingExtraError` unless an extra is installed completely; import nothing."""
    for package in EXTRAS[extra]:
        if not _is_installed(package):
            raise MissingExtraError(package, (extra,))


@contextmanager
def optional_imports() -> Iterator[None]:
    """Turn the failure to import a package that an extra brings into `MissingExtraError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        named = missing_extra(error)
        if named is None or named is error:
            raise
        raise named from None


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the package that it is part of
        return False
