"""Pod security levels: what a namespace asks of its pods, and which of it a pod violates.

levels           levels, versions, and the policy that the labels of a namespace ask for
evaluation       which checks a level and version has, and what of a pod violates them
evaluated_pod    a pod as the checks read it
baseline         checks of the baseline level
restricted       checks of the restricted level
configuration    defaults for namespaces without labels, and exemptions
"""

from moorage.validation.pod_security.configuration import (
    PodSecurityConfiguration,
    PodSecurityConfigurationError,
    read_admission_configuration,
)
from moorage.validation.pod_security.evaluated_pod import EvaluatedPod
from moorage.validation.pod_security.evaluation import PodEvaluator, PolicyViolations
from moorage.validation.pod_security.levels import (
    LATEST,
    PRIVILEGED_POLICY,
    Level,
    LevelVersion,
    PodSecurityPolicy,
    PolicyVersion,
    policy_of,
)

__all__ = [
    "LATEST",
    "PRIVILEGED_POLICY",
    "EvaluatedPod",
    "Level",
    "LevelVersion",
    "PodEvaluator",
    "PodSecurityConfiguration",
    "PodSecurityConfigurationError",
    "PodSecurityPolicy",
    "PolicyVersion",
    "PolicyViolations",
    "policy_of",
    "read_admission_configuration",
]
