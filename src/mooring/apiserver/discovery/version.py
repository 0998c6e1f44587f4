"""/version: the Kubernetes that we are like, and what we are made of."""

from __future__ import annotations

from mooring import __version__
from mooring.apiserver.documents import Document, plain

MAJOR, MINOR = "1", "37"
COMPATIBLE_MINOR = "36"


def version_document(*, python_version: str, platform: str) -> Document:
    """Return the versions; clients compare major and minor with their own."""
    return plain(
        {
            "major": MAJOR,
            "minor": MINOR,
            "emulationMajor": MAJOR,
            "emulationMinor": MINOR,
            "minCompatibilityMajor": MAJOR,
            "minCompatibilityMinor": COMPATIBLE_MINOR,
            "gitVersion": f"v{MAJOR}.{MINOR}.0+mooring.{__version__}",
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": f"python{python_version}",  # there is no other field for it
            "compiler": "python",
            "platform": platform,
        }
    )
