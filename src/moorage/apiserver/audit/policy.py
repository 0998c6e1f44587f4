"""The audit policy: which requests are logged, and how much of each.

The first rule that matches a request decides; a request that no rule matches is not logged. Bodies
of Secrets and tokens are logged only by a rule that names these resources: a rule for everything
does not put passwords into a log.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from moorage.api.documents import CORE, read
from moorage.api.errors import ApiError
from moorage.apiserver.auth.access import RequestAttributes
from moorage.apiserver.auth.users import User
from moorage.apiserver.errors import AuditPolicyError

API_VERSION, KIND = "audit.k8s.io/v1", "Policy"

RECEIVED, STARTED, COMPLETE = "RequestReceived", "ResponseStarted", "ResponseComplete"
STAGES: Final = (RECEIVED, STARTED, COMPLETE, "Panic")

# group, resource/subresource: requests or responses with secrets
_SECRET: Final = frozenset(
    {
        ("", "secrets"),
        ("", "serviceaccounts/token"),
        ("authentication.k8s.io", "tokenreviews"),
    }
)


class AuditLevel(IntEnum):
    """How much of a request is logged."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


LEVELS: Final = {
    "None": AuditLevel.NONE,
    "Metadata": AuditLevel.METADATA,
    "Request": AuditLevel.REQUEST,
    "RequestResponse": AuditLevel.REQUEST_RESPONSE,
}
LEVEL_NAMES: Final = {level: name for name, level in LEVELS.items()}


class GroupResources(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Resources of a group."""

    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()


class AuditRule(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which requests to log, and how much; an empty list matches all."""

    level: str
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_ur_ls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool | None = None


class AuditPolicy(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Rules, and settings for all of them."""

    api_version: str
    kind: str
    rules: tuple[AuditRule, ...]
    omit_stages: tuple[str, ...] = ()
    omit_managed_fields: bool = False
    metadata: dict[str, Any] = {}


DEFAULT_POLICY: Final = AuditPolicy(
    api_version=API_VERSION, kind=KIND, rules=(AuditRule("Metadata"),), omit_stages=(RECEIVED,)
)


class AuditDecision(NamedTuple):
    """What to log of a request."""

    level: AuditLevel = AuditLevel.NONE
    omitted_stages: frozenset[str] = frozenset()
    omits_managed_fields: bool = False


def read_policy(data: bytes, source: str) -> AuditPolicy:
    """Return a policy from YAML or JSON, or raise AuditPolicyError."""
    try:
        documents = list(read(data, source=source, schema=CORE))
        if len(documents) != 1:
            raise AuditPolicyError(
                f"{source}: must hold one Policy, holds {len(documents)} documents"
            )
        policy = msgspec.convert(documents[0].tree, AuditPolicy)
    except (ApiError, RecursionError) as error:
        raise AuditPolicyError(str(error)) from None
    except msgspec.ValidationError as error:
        raise AuditPolicyError(f"{source}: {error}") from None
    _check(policy, source)
    return policy


def _check(policy: AuditPolicy, source: str) -> None:
    if (policy.api_version, policy.kind) != (API_VERSION, KIND):
        found = f"{policy.api_version} {policy.kind}"
        raise AuditPolicyError(f"{source}: must be a {API_VERSION} {KIND}, is a {found}")
    if not policy.rules:
        raise AuditPolicyError(f"{source}: rules: there is none, so nothing would be noted")
    _check_stages(policy.omit_stages, f"{source}: omitStages")
    for number, rule in enumerate(policy.rules):
        where = f"{source}: rules[{number}]"
        if rule.level not in LEVELS:
            raise AuditPolicyError(f"{where}.level: {rule.level!r} is none of {', '.join(LEVELS)}")
        if rule.non_resource_ur_ls and (rule.resources or rule.namespaces):
            raise AuditPolicyError(
                f"{where}.nonResourceURLs: not together with resources, namespaces"
            )
        for url in rule.non_resource_ur_ls:
            if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
                raise AuditPolicyError(
                    f"{where}.nonResourceURLs: {url!r}: a path, or one that ends in *"
                )
        _check_stages(rule.omit_stages, f"{where}.omitStages")


def _check_stages(stages: tuple[str, ...], where: str) -> None:
    for stage in stages:
        if stage not in STAGES:
            raise AuditPolicyError(f"{where}: {stage!r} is none of {', '.join(STAGES)}")


# --- deciding -------------------------------------------------------------------------------------


def decide(policy: AuditPolicy, user: User | None, asked: RequestAttributes) -> AuditDecision:
    """Return what to log of a request; an unauthenticated user matches no rule by name."""
    for rule in policy.rules:
        if _matches(rule, user, asked):
            omits = rule.omit_managed_fields
            return AuditDecision(
                _level(rule, asked),
                frozenset((*policy.omit_stages, *rule.omit_stages)),
                policy.omit_managed_fields if omits is None else omits,
            )
    return AuditDecision()


def _level(rule: AuditRule, asked: RequestAttributes) -> AuditLevel:
    level = LEVELS[rule.level]
    name = _combined(asked)
    if level <= AuditLevel.METADATA or (asked.group, name) not in _SECRET:
        return level
    is_named = any(g.group == asked.group and name in g.resources for g in rule.resources)
    return level if is_named else AuditLevel.METADATA


def _matches(rule: AuditRule, user: User | None, asked: RequestAttributes) -> bool:
    if rule.users and (user is None or user.name not in rule.users):
        return False
    groups = () if user is None else user.groups
    if rule.user_groups and not any(group in groups for group in rule.user_groups):
        return False
    if rule.verbs and not ("*" in rule.verbs or asked.verb in rule.verbs):
        return False
    if rule.resources or rule.namespaces:
        return not asked.path and _matches_resource(rule, asked)
    if rule.non_resource_ur_ls:
        return bool(asked.path) and any(_is_path(u, asked.path) for u in rule.non_resource_ur_ls)
    return True


def _matches_resource(rule: AuditRule, asked: RequestAttributes) -> bool:
    if rule.namespaces and asked.namespace not in rule.namespaces:
        return False
    return not rule.resources or any(_is_among(group, asked) for group in rule.resources)


def _is_among(listed: GroupResources, asked: RequestAttributes) -> bool:
    if listed.group not in (asked.group, "*"):
        return False
    if listed.resource_names and asked.name not in listed.resource_names:
        return False
    wanted = {"*", _combined(asked), f"{asked.resource}/*"}
    if asked.subresource:
        wanted.add(f"*/{asked.subresource}")
    return not listed.resources or not wanted.isdisjoint(listed.resources)


def _combined(asked: RequestAttributes) -> str:
    return f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource


def _is_path(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path
