"""The fields of batch/v1."""

from __future__ import annotations

BATCH = """\
Job
  string: apiVersion kind
  metadata ObjectMeta
  spec JobSpec
  status JobStatus
JobCondition
  string: message reason status type
  any: lastProbeTime lastTransitionTime
JobSchedulingConfiguration
  disruptionMode WorkloadPodGroupDisruptionMode
  resourceClaims [WorkloadPodGroupResourceClaim by name] | merge name
  schedulingConstraints WorkloadPodGroupSchedulingConstraints
  schedulingPolicy WorkloadPodGroupSchedulingPolicy
JobSpec
  string: completionMode managedBy podReplacementPolicy
  number: activeDeadlineSeconds backoffLimit backoffLimitPerIndex completions
  number: maxFailedIndexes parallelism ttlSecondsAfterFinished
  bool: manualSelector suspend
  podFailurePolicy PodFailurePolicy
  scheduling JobSchedulingConfiguration
  selector LabelSelector
  successPolicy SuccessPolicy
  template PodTemplateSpec
JobStatus
  string: completedIndexes failedIndexes
  number: active failed ready succeeded terminating
  any: completionTime startTime
  conditions [JobCondition] | merge type
  uncountedTerminatedPods UncountedTerminatedPods
PodFailurePolicy
  rules [PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement
  string: containerName operator
  values [number set]
PodFailurePolicyOnPodConditionsPattern
  string: status type
PodFailurePolicyRule
  string: action
  onExitCodes PodFailurePolicyOnExitCodesRequirement
  onPodConditions [PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy
  rules [SuccessPolicyRule]
SuccessPolicyRule
  string: succeededIndexes
  number: succeededCount
UncountedTerminatedPods
  failed [string set]
  succeeded [string set]
"""
