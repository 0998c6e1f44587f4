"""Diagnosis: why claims cannot be allocated on a node, the smallest conflict, and what would help.

situation     all that decides whether claims get devices on a node
changes       what could be otherwise, and `applied`, which makes it so
trials        what the allocator says then, remembered and bounded
funnel        how many devices are left for a request after each question
conflict      what together is impossible, every part of it needed
fixes         the nearest changes that help, each tried
report        all of it as lines or as a tree
"""

from mooring.insight.diagnosis.applying import applied
from mooring.insight.diagnosis.changes import Change, Changes
from mooring.insight.diagnosis.conflict import Conflict, members_of
from mooring.insight.diagnosis.diagnosis import Diagnosis, diagnose, diagnose_claims
from mooring.insight.diagnosis.fixes import Fix, asks_for_nothing
from mooring.insight.diagnosis.funnel import Funnel, Nearest
from mooring.insight.diagnosis.report import lines, tree
from mooring.insight.diagnosis.situation import Place, Situation
from mooring.insight.diagnosis.trials import EFFORT, Effort
from mooring.insight.diagnosis.words import member_text, refusal_text, text_of

__all__ = [
    "EFFORT",
    "Change",
    "Changes",
    "Conflict",
    "Diagnosis",
    "Effort",
    "Fix",
    "Funnel",
    "Nearest",
    "Place",
    "Situation",
    "applied",
    "asks_for_nothing",
    "diagnose",
    "diagnose_claims",
    "lines",
    "member_text",
    "members_of",
    "refusal_text",
    "text_of",
    "tree",
]
