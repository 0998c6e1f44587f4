"""The fields of apps/v1."""

from __future__ import annotations

APPS = """\
DaemonSet
  string: apiVersion kind
  metadata ObjectMeta
  spec DaemonSetSpec
  status DaemonSetStatus
DaemonSetCondition
  string: message reason status type
  any: lastTransitionTime
DaemonSetSpec
  number: minReadySeconds revisionHistoryLimit
  selector LabelSelector
  template PodTemplateSpec
  updateStrategy DaemonSetUpdateStrategy
DaemonSetStatus
  number: collisionCount currentNumberScheduled desiredNumberScheduled numberAvailable
  number: numberMisscheduled numberReady numberUnavailable observedGeneration
  number: updatedNumberScheduled
  conditions [DaemonSetCondition by type] | merge type
DaemonSetUpdateStrategy
  string: type
  rollingUpdate RollingUpdateDaemonSet
Deployment
  string: apiVersion kind
  metadata ObjectMeta
  spec DeploymentSpec
  status DeploymentStatus
DeploymentCondition
  string: message reason status type
  any: lastTransitionTime lastUpdateTime
DeploymentSpec
  number: minReadySeconds progressDeadlineSeconds replicas revisionHistoryLimit
  bool: paused
  selector LabelSelector
  strategy DeploymentStrategy | retainKeys
  template PodTemplateSpec
DeploymentStatus
  number: availableReplicas collisionCount observedGeneration readyReplicas replicas
  number: terminatingReplicas unavailableReplicas updatedReplicas
  conditions [DeploymentCondition by type] | merge type
DeploymentStrategy
  string: type
  rollingUpdate RollingUpdateDeployment
ReplicaSet
  string: apiVersion kind
  metadata ObjectMeta
  spec ReplicaSetSpec
  status ReplicaSetStatus
ReplicaSetCondition
  string: message reason status type
  any: lastTransitionTime
ReplicaSetSpec
  number: minReadySeconds replicas
  selector LabelSelector
  template PodTemplateSpec
ReplicaSetStatus
  number: availableReplicas fullyLabeledReplicas observedGeneration readyReplicas
  number: replicas terminatingReplicas
  conditions [ReplicaSetCondition by type] | merge type
RollingUpdateDaemonSet
  any: maxSurge maxUnavailable
RollingUpdateDeployment
  any: maxSurge maxUnavailable
RollingUpdateStatefulSetStrategy
  number: partition
  any: maxUnavailable
StatefulSet
  string: apiVersion kind
  metadata ObjectMeta
  spec StatefulSetSpec
  status StatefulSetStatus
StatefulSetCondition
  string: message reason status type
  any: lastTransitionTime
StatefulSetOrdinals
  number: start
StatefulSetPersistentVolumeClaimRetentionPolicy
  string: whenDeleted whenScaled
StatefulSetSpec
  string: podManagementPolicy serviceName
  number: minReadySeconds replicas revisionHistoryLimit
  ordinals StatefulSetOrdinals
  persistentVolumeClaimRetentionPolicy StatefulSetPersistentVolumeClaimRetentionPolicy
  selector LabelSelector
  template PodTemplateSpec
  updateStrategy StatefulSetUpdateStrategy
  volumeClaimTemplates [PersistentVolumeClaim]
StatefulSetStatus
  string: currentRevision updateRevision
  number: availableReplicas collisionCount currentReplicas observedGeneration
  number: readyReplicas replicas updatedReplicas
  conditions [StatefulSetCondition by type] | merge type
StatefulSetUpdateStrategy
  string: type
  rollingUpdate RollingUpdateStatefulSetStrategy
"""
