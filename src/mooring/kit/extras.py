"""Optional dependencies: which extra brings which package, and the error where one is missing.

The base installation plans, explains, checks, and talks to clusters. Packages that only servers,
nodes and drivers need come with extras. A module that imports one of them says so:

    with optional_imports():
        import uvicorn

Without the package, that module and all that import it raise `MissingExtraError`, which names
the extra. gRPC and protobuf are imported this way in `mooring.wire` alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

# extra: the packages it brings, by the names that they are imported by. `nvidia-ml-py`, which
# comes with `drivers`, is not among them: drivers of other hardware do without.
EXTRAS = {
    "drivers": ("google.protobuf", "grpc"),
    "server": ("cryptography", "google.protobuf", "grpc", "uvicorn"),
}


class MissingExtraError(ModuleNotFoundError):
    """A package that is not installed, and comes with one or more extras of Mooring."""

    def __init__(self, package: str, extras: tuple[str, ...]) -> None:
        commands = " or ".join(map(remedy, extras))
        super().__init__(f"{package} is not installed: {commands}", name=package)
        self.extra = extras[0]


def remedy(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'mooring[{extra}]'"


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error that names the extra with what is missing; None if no extra brings it."""
    if isinstance(error, MissingExtraError):
        return error
    for package in sorted({each for brought in EXTRAS.values() for each in brought}):
        # Of google.protobuf already google is missing, unless other packages are in there.
        if error.name in {package, package.partition(".")[0]}:
            extras = (extra for extra, brought in EXTRAS.items() if package in brought)
            return MissingExtraError(package, tuple(extras))
    return None


def require(extra: str) -> None:
    """Raise `MissingExtraError` unless all that an extra brings is installed; import nothing."""
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
