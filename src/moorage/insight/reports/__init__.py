"""Reports for CI systems and editors, written from findings.

findings  checked objects, findings about them, and rules
rules     the rules of each command, with their help
sarif     SARIF 2.1.0, for code scanning and editors
junit     JUnit XML, for test reports
github    workflow commands of GitHub Actions, which become annotations
"""

from moorage.insight.reports.findings import (
    CheckedObject,
    FindingLevel,
    FindingReport,
    ReportFinding,
    ReportPlace,
    ReportRule,
)
from moorage.insight.reports.github import github_commands
from moorage.insight.reports.junit import junit_document
from moorage.insight.reports.sarif import sarif_document

__all__ = [
    "CheckedObject",
    "FindingLevel",
    "FindingReport",
    "ReportFinding",
    "ReportPlace",
    "ReportRule",
    "github_commands",
    "junit_document",
    "sarif_document",
]
