"""MOVED."""

from mooring.insight.explain.situation import SituationChange as Change  # noqa
from mooring.insight.explain.situation import Situation as Situation  # noqa
from mooring.insight.explain.conflict import members_of as members_of  # noqa
from mooring.insight.explain.diagnosis import Diagnosis as Diagnosis  # noqa
from mooring.insight.explain.diagnosis import diagnose as diagnose  # noqa
from mooring.insight.explain.fixes import Fix as Fix  # noqa
from mooring.insight.explain.fixes import asks_for_nothing as asks_for_nothing  # noqa
from mooring.insight.explain.phrases import change_text as text_of  # noqa
from mooring.insight.explain.trials import applied as applied  # noqa
from mooring.insight.explain.diagnosis import diagnose_claims as diagnose_claims  # noqa
from mooring.insight.explain.report import diagnosis_lines as lines  # noqa

__all__ = [
    "diagnose_claims",
    "lines",
    "Change",
    "Situation",
    "members_of",
    "Diagnosis",
    "diagnose",
    "Fix",
    "asks_for_nothing",
    "text_of",
    "applied",
]  # noqa
