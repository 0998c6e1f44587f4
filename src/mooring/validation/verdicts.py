"""MOVED."""

from mooring.validation.manifests import Finding as Finding  # noqa
from mooring.validation.manifests import Judge as Judge  # noqa
from mooring.validation.manifests import Severity as Severity  # noqa
from mooring.validation.manifests import Verdict as Verdict  # noqa
from mooring.validation.manifests import written_place as written_place  # noqa

__all__ = ["Finding", "Judge", "Severity", "Verdict", "written_place"]  # noqa
