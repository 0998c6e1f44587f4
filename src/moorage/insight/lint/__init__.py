"""Lint: findings about claims, templates, classes, taint rules, slices and pods.

linter           applies every rule to every object
rule             the contract of a rule
subjects         objects with their text, what they select, and the pods in them
context          everything else in the input: devices, classes, other objects
pools            slices as pools, and the attributes that drivers publish

claim_rules      claims, templates, classes and taint rules by themselves
selector_rules   expressions, put to devices
constraint_rules  constraints, and the attributes that are derived for them
advice           how to write expressions, verified on devices
slice_rules      single slices
pool_rules       the slices of a pool, and the attributes of all devices
pod_rules        pods, and the claims that they use
"""

from moorage.insight.lint.context import LintContext, ObjectIndex
from moorage.insight.lint.linter import (
    KINDS,
    RULE_IDS,
    RULES,
    Finding,
    hindered,
    lacking,
    lint,
    rules_that_run,
)
from moorage.insight.lint.rule import Needs, Rule, Severity

__all__ = [
    "KINDS",
    "RULES",
    "RULE_IDS",
    "Finding",
    "LintContext",
    "Needs",
    "ObjectIndex",
    "Rule",
    "Severity",
    "hindered",
    "lacking",
    "lint",
    "rules_that_run",
]
