"""The fields of core/v1, but for pods: nodes, namespaces, config maps, quotas and so on."""

from __future__ import annotations

CORE = """\
AttachedVolume
  string: devicePath name
Binding
  string: apiVersion kind
  metadata ObjectMeta
  target ObjectReference
ConfigMap
  string: apiVersion kind
  bool: immutable
  {string}: binaryData data
  metadata ObjectMeta
ConfigMapNodeConfigSource
  string: kubeletConfigKey name namespace resourceVersion uid
ContainerImage
  number: sizeBytes
  [string]: names
DaemonEndpoint
  number: Port
Event
  string: action apiVersion kind message reason reportingComponent reportingInstance
  string: type
  number: count
  any: eventTime firstTimestamp lastTimestamp
  involvedObject ObjectReference
  metadata ObjectMeta
  related ObjectReference
  series EventSeries
  source EventSource
EventSeries
  number: count
  any: lastObservedTime
EventSource
  string: component host
ModifyVolumeStatus
  string: status targetVolumeAttributesClassName
Namespace
  string: apiVersion kind
  metadata ObjectMeta
  spec NamespaceSpec
  status NamespaceStatus
NamespaceCondition
  string: message reason status type
  any: lastTransitionTime
NamespaceSpec
  [string]: finalizers
NamespaceStatus
  string: phase
  conditions [NamespaceCondition by type] | merge type
Node
  string: apiVersion kind
  metadata ObjectMeta
  spec NodeSpec
  status NodeStatus
NodeAddress
  string: address type
NodeCondition
  string: message reason status type
  any: lastHeartbeatTime lastTransitionTime
NodeConfigSource
  configMap ConfigMapNodeConfigSource
NodeConfigStatus
  string: error
  active NodeConfigSource
  assigned NodeConfigSource
  lastKnownGood NodeConfigSource
NodeDaemonEndpoints
  kubeletEndpoint DaemonEndpoint
NodeFeatures
  bool: supplementalGroupsPolicy
NodePodPreemptionPolicy
  disableResizePreemption [string set]
NodeRuntimeHandler
  string: name
  features NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures
  bool: recursiveReadOnlyMounts userNamespaces
NodeSpec
  string: externalID podCIDR providerID
  bool: unschedulable
  configSource NodeConfigSource
  podCIDRs [string set] | merge
  podPreemptionPolicy NodePodPreemptionPolicy
  taints [Taint]
NodeStatus
  string: phase
  [string]: declaredFeatures volumesInUse
  {any}: allocatable capacity
  addresses [NodeAddress by type] | merge type
  conditions [NodeCondition by type] | merge type
  config NodeConfigStatus
  daemonEndpoints NodeDaemonEndpoints
  features NodeFeatures
  images [ContainerImage]
  nodeInfo NodeSystemInfo
  runtimeHandlers [NodeRuntimeHandler]
  volumesAttached [AttachedVolume]
NodeSwapStatus
  number: capacity
NodeSystemInfo
  string: architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion
  string: kubeletVersion machineID operatingSystem osImage systemUUID
  bool: runningInUserNamespace
  swap NodeSwapStatus
ObjectReference atomic
  string: apiVersion fieldPath kind name namespace resourceVersion uid
PersistentVolumeClaim
  string: apiVersion kind
  metadata ObjectMeta
  spec PersistentVolumeClaimSpec
  status PersistentVolumeClaimStatus
PersistentVolumeClaimCondition
  string: message reason status type
  any: lastProbeTime lastTransitionTime
PersistentVolumeClaimStatus
  string: currentVolumeAttributesClassName phase
  [string]: accessModes
  {string}: allocatedResourceStatuses
  {any}: allocatedResources capacity
  conditions [PersistentVolumeClaimCondition by type] | merge type
  healthStatus VolumeHealthStatus
  modifyVolumeStatus ModifyVolumeStatus
PodTemplateSpec
  metadata ObjectMeta
  spec PodSpec
ResourceQuota
  string: apiVersion kind
  metadata ObjectMeta
  spec ResourceQuotaSpec
  status ResourceQuotaStatus
ResourceQuotaSpec
  [string]: scopes
  {any}: hard
  scopeSelector ScopeSelector
ResourceQuotaStatus
  {any}: hard used
ScopeSelector atomic
  matchExpressions [ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement
  string: operator scopeName
  [string]: values
Secret
  string: apiVersion kind type
  bool: immutable
  {string}: data stringData
  metadata ObjectMeta
ServiceAccount
  string: apiVersion kind
  bool: automountServiceAccountToken
  imagePullSecrets [LocalObjectReference]
  metadata ObjectMeta
  secrets [ObjectReference by name?] | merge name
Taint
  string: effect key value
  any: timeAdded
VolumeHealthStatus
  any: lastTransitionTime
  healthConditions [VolumeHealthCondition by status reason] | merge status
"""
