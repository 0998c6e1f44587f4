"""Rules for what a job should be: how many pods, how often they may fail, what they are."""

from __future__ import annotations

import re
from typing import Any

from mooring.api import names
from mooring.api.batch import JobSpec
from mooring.api.fieldpath import Path
from mooring.api.names import byte_length
from mooring.validation.checks import each_invalid, not_negative
from mooring.validation.errors import Errors, invalid, not_supported, required, too_long
from mooring.validation.labelselectors import check_label_selector, selector_of
from mooring.validation.workloads.jobpolicies import (
    INDEXED,
    check_failure_policy,
    check_success_policy,
)
from mooring.validation.workloads.templates import check_template, not_selected

NON_INDEXED = "NonIndexed"

PARALLELISM_MAX = 100_000
FAILED_INDEXES_MAX = 100_000
MANY_COMPLETIONS = 100_000  # above which less may be done at once
PARALLELISM_OF_MANY_MAX = 10_000
FAILED_INDEXES_OF_MANY_MAX = 10_000
MANAGER_MAX_BYTES = 63

_NEEDS_INDEXES = "requires indexed completion mode"
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_path = re.compile(_PATH).fullmatch


def check_job_spec(spec: JobSpec, path: Path) -> Errors:
    """Check the spec of a job, new or changed."""
    found = _check_numbers(spec, path)
    if spec.managed_by is not None:
        found += _check_manager(spec.managed_by, path.child("managedBy"))
    found += _check_completion_mode(spec, path)
    if spec.pod_failure_policy is not None:
        found += check_failure_policy(spec, path.child("podFailurePolicy"))
    if spec.success_policy is not None:
        found += check_success_policy(spec, path.child("successPolicy"))
    found += _check_replacement(spec, path.child("podReplacementPolicy"))
    found += _check_gang(spec, path.child("scheduling", "schedulingPolicy", "gang", "minCount"))
    found += check_template(spec.template, path.child("template"))
    found += _check_restarts(spec, path.child("template", "spec", "restartPolicy"))
    return found + _check_selector(spec, path)


def _check_numbers(spec: JobSpec, path: Path) -> Errors:
    found: Errors = []
    for name, number in (
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index),
        ("maxFailedIndexes", spec.max_failed_indexes),
    ):
        found += not_negative(number, path.child(name))
    if spec.max_failed_indexes is not None and spec.backoff_limit_per_index is None:
        place = path.child("backoffLimitPerIndex")
        found.append(required(place, "when maxFailedIndexes is specified"))
    return found


def _check_manager(manager: str, path: Path) -> Errors:
    if not manager:
        return [required(path)]
    domain, _, rest = manager.partition("/")
    if not domain or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [invalid(path, manager, detail)]
    found = each_invalid(path, domain, names.dns1123_subdomain(domain))
    if not _is_path(rest):
        detail = f"Invalid path (regex used for validation is '{_PATH}')"
        found.append(invalid(path, rest, detail))
    if byte_length(manager) > MANAGER_MAX_BYTES:
        found.append(too_long(path, MANAGER_MAX_BYTES))
    return found


def _check_replacement(spec: JobSpec, path: Path) -> Errors:
    policy = spec.pod_replacement_policy
    has_failures = spec.pod_failure_policy is not None
    supported = ("Failed",) if has_failures else ("Failed", "TerminatingOrFailed")
    if policy is None or policy in supported:
        return []
    return [not_supported(path, policy, supported)]


def _check_gang(spec: JobSpec, path: Path) -> Errors:
    """Check that not more pods must start together than there are at once."""
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    scheduling: Any = spec.scheduling
    match scheduling:
        case {"schedulingPolicy": {"gang": {"minCount": int(count)}}} if count > parallelism:
            detail = f"must not be greater than parallelism ({parallelism})"
            return [invalid(path, count, detail)]
    return []


def _check_restarts(spec: JobSpec, path: Path) -> Errors:
    """Check that pods of the job can end."""
    policy = spec.template.spec.restart_policy
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.pod_failure_policy is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        return [invalid(path, policy, detail)]
    return []


def _check_selector(spec: JobSpec, path: Path) -> Errors:
    found: Errors = []
    if spec.selector is None:
        found.append(required(path.child("selector")))
    else:
        found += check_label_selector(spec.selector, path.child("selector"))
    readable = selector_of(spec.selector)
    if readable is not None and not readable.matches(spec.template.metadata.labels):
        found.append(not_selected(spec.template, path))
    return found


# --- indexes ------------------------------------------------------------------------------


def _check_completion_mode(spec: JobSpec, path: Path) -> Errors:
    match spec.completion_mode:
        case "Indexed":
            return _check_indexed(spec, path)
        case None | "NonIndexed":
            return [
                invalid(path.child(name), number, _NEEDS_INDEXES)
                for name, number in (
                    ("backoffLimitPerIndex", spec.backoff_limit_per_index),
                    ("maxFailedIndexes", spec.max_failed_indexes),
                )
                if number is not None
            ]
        case mode:
            return [not_supported(path.child("completionMode"), mode, (NON_INDEXED, INDEXED))]


def _check_indexed(spec: JobSpec, path: Path) -> Errors:
    found: Errors = []
    completions, failed = spec.completions, spec.max_failed_indexes
    if completions is None:
        found.append(required(path.child("completions"), f"when completion mode is {INDEXED}"))
    if spec.parallelism is not None and spec.parallelism > PARALLELISM_MAX:
        detail = (
            f"must be less than or equal to {PARALLELISM_MAX} when completion mode is {INDEXED}"
        )
        found.append(invalid(path.child("parallelism"), spec.parallelism, detail))
    place = path.child("maxFailedIndexes")
    if completions is not None and failed is not None and failed > completions:
        found.append(invalid(place, failed, "must be less than or equal to completions"))
    if failed is not None and failed > FAILED_INDEXES_MAX:
        found.append(invalid(place, failed, f"must be less than or equal to {FAILED_INDEXES_MAX}"))
    has_many = completions is not None and completions > MANY_COMPLETIONS
    if has_many and spec.backoff_limit_per_index is not None:
        found += _check_many(spec, path)
    return found


def _check_many(spec: JobSpec, path: Path) -> Errors:
    """Check a job of which so much must be remembered that little may be done at once."""
    found: Errors = []
    if spec.max_failed_indexes is None:
        detail = f"must be specified when completions is above {MANY_COMPLETIONS}"
        found.append(required(path.child("maxFailedIndexes"), detail))
    for name, number, number_max in (
        ("parallelism", spec.parallelism, PARALLELISM_OF_MANY_MAX),
        ("maxFailedIndexes", spec.max_failed_indexes, FAILED_INDEXES_OF_MANY_MAX),
    ):
        if number is not None and number > number_max:
            detail = (
                f"must be less than or equal to {number_max} when completions are above "
                f"{MANY_COMPLETIONS} and used with backoff limit per index"
            )
            found.append(invalid(path.child(name), number, detail))
    return found
