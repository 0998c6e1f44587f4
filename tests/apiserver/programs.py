"""Programs that tests of the server run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import dev

NO_KUBECTL = "kubectl cannot be had: it is not tried with the server"


def find_kubectl() -> str | None:
    """Return where a kubectl is: the machine's own, or what `dev.py test` fetched."""
    return next(iter(find_kubectls().values()), None)


def find_kubectls() -> dict[str, str]:
    """Return all kubectls that there are, by whose they are."""
    return dict(_kubectls())


def _kubectls() -> Iterator[tuple[str, str]]:
    own = shutil.which("kubectl")
    if own is not None:
        yield "own", own
    for release in dev.KUBECTL_RELEASES:
        if dev.kubectl_of(release).exists():
            yield release, str(dev.kubectl_of(release))
