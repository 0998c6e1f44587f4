"""Which checks a level has in a version, and what of a pod violates them.

A check has one or more revisions; the newest one that is not newer than the version applies. Some
checks of the restricted level take the place of a weaker one of the baseline level.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from moorage.api.gates import BINARY_MINOR
from moorage.validation.pod_security import baseline, restricted
from moorage.validation.pod_security.evaluated_pod import Check, EvaluatedPod, Violation
from moorage.validation.pod_security.levels import Level, LevelVersion


class _Rule(NamedTuple):
    """A check with its revisions by the minor version that each came with, oldest first."""

    name: str
    revisions: tuple[tuple[int, Check], ...]
    replaces: str = ""  # a check of the baseline level

    def at(self, minor: int) -> Check | None:
        """Return the revision that applies in a version, if there is one yet."""
        return next((check for since, check in reversed(self.revisions) if since <= minor), None)


# Both in the order of Kubernetes' messages: by name.
_BASELINE: Final = (
    _Rule("appArmorProfile", ((0, baseline.app_armor_profile),)),
    _Rule("capabilities_baseline", ((0, baseline.capabilities),)),
    _Rule("hostNamespaces", ((0, baseline.host_namespaces),)),
    _Rule("hostPathVolumes", ((0, baseline.host_path_volumes),)),
    _Rule("hostPorts", ((0, baseline.host_ports),)),
    _Rule("hostProbesAndHostLifecycle", ((34, baseline.host_probes),)),
    _Rule("privileged", ((0, baseline.privileged),)),
    _Rule("procMount", ((0, baseline.proc_mount), (35, baseline.proc_mount_1_35))),
    _Rule("seLinuxOptions", ((0, baseline.selinux_options), (31, baseline.selinux_options_1_31))),
    _Rule(
        "seccompProfile_baseline",
        ((0, baseline.seccomp_profile_1_0), (19, baseline.seccomp_profile_1_19)),
    ),
    _Rule(
        "sysctls",
        (
            (0, baseline.sysctls),
            (27, baseline.sysctls_1_27),
            (29, baseline.sysctls_1_29),
            (32, baseline.sysctls_1_32),
            (37, baseline.sysctls_1_37),
        ),
    ),
    _Rule("windowsHostProcess", ((0, baseline.windows_host_process),)),
)
_RESTRICTED: Final = (
    _Rule(
        "allowPrivilegeEscalation",
        (
            (8, restricted.allow_privilege_escalation),
            (25, restricted.allow_privilege_escalation_1_25),
        ),
    ),
    _Rule(
        "capabilities_restricted",
        ((22, restricted.capabilities), (25, restricted.capabilities_1_25)),
        replaces="capabilities_baseline",
    ),
    _Rule("procMount_restricted", ((35, baseline.proc_mount),), replaces="procMount"),
    _Rule("restrictedVolumes", ((0, restricted.volumes),), replaces="hostPathVolumes"),
    _Rule("runAsNonRoot", ((0, restricted.run_as_non_root), (35, restricted.run_as_non_root_1_35))),
    _Rule("runAsUser", ((23, restricted.run_as_user), (35, restricted.run_as_user_1_35))),
    _Rule(
        "seccompProfile_restricted",
        ((19, restricted.seccomp_profile), (25, restricted.seccomp_profile_1_25)),
        replaces="seccompProfile_baseline",
    ),
)


@lru_cache(maxsize=256)
def checks_of(level: Level, minor: int) -> tuple[Check, ...]:
    """Return the checks of a level in the version 1.<minor>, in the order of messages."""
    if level is Level.PRIVILEGED:
        return ()
    rules: tuple[_Rule, ...] = _BASELINE
    if level is Level.RESTRICTED:
        more = tuple(rule for rule in _RESTRICTED if rule.at(minor) is not None)
        replaced = {rule.replaces for rule in more}
        rules = tuple(rule for rule in rules if rule.name not in replaced) + more
    return tuple(check for rule in rules if (check := rule.at(minor)) is not None)


class PolicyViolations(NamedTuple):
    """What of a pod violates a level; nothing, if the level allows the pod."""

    found: tuple[Violation, ...]

    def __bool__(self) -> bool:
        return bool(self.found)

    @property
    def reasons(self) -> str:
        """What is forbidden, without the values of the pod."""
        return ", ".join(violation.reason for violation in self.found)

    def __str__(self) -> str:
        return ", ".join(map(str, self.found))


class PodEvaluator:
    """Evaluates pods against levels; versions beyond the newest one count as that one."""

    def __init__(self, minor_max: int = BINARY_MINOR) -> None:
        self._minor_max = minor_max

    def evaluate(self, wanted: LevelVersion, pod: EvaluatedPod) -> PolicyViolations:
        """Return what of a pod violates a level."""
        results = (check(pod) for check in self.checks(wanted))
        return PolicyViolations(tuple(each for each in results if each is not None))

    def checks(self, wanted: LevelVersion) -> tuple[Check, ...]:
        """Return the checks of a level, for who makes them one by one."""
        minor = wanted.version.minor
        return checks_of(
            wanted.level, self._minor_max if minor is None else min(minor, self._minor_max)
        )
