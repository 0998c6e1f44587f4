"""MOVED."""

from mooring.validation.manifests import Finding as Finding
from mooring.validation.manifests import Judge as Judge
from mooring.validation.manifests import Severity as Severity
from mooring.validation.manifests import Verdict as Verdict
from mooring.validation.manifests import written_place as written_place

__all__ = ["Finding", "Judge", "Severity", "Verdict", "written_place"]
