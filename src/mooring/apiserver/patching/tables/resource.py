"""The fields of resource.k8s.io.

v1beta2 is as v1. v1beta1 and v1alpha3 are as v1 but for the structs that stand here. Of
DeviceTaintSelector, deviceClassName and selectors are extensions of ours.
"""

from __future__ import annotations

V1 = """\
AllocatedDeviceStatus
  string: device driver pool shareID
  conditions [Condition by type]
  data json
  networkData NetworkDeviceData
AllocationResult
  any: allocationTimestamp
  devices DeviceAllocationResult
  nodeSelector NodeSelector
CELDeviceSelector
  string: expression
CapacityRequestPolicy
  any: default
  validRange CapacityRequestPolicyRange
  validValues [any]
CapacityRequestPolicyRange
  any: max min step
CapacityRequirements
  {any}: requests
Counter
  any: value
CounterSet
  string: name
  counters {Counter}
Device
  string: name nodeName
  bool: allNodes allowMultipleAllocations bindsToNode
  [string]: bindingConditions bindingFailureConditions
  attributes {DeviceAttribute}
  capacity {DeviceCapacity}
  consumesCounters [DeviceCounterConsumption]
  nodeAllocatableResources {NodeAllocatableResource}
  nodeSelector NodeSelector
  taints [DeviceTaint]
DeviceAllocationConfiguration
  string: source
  [string]: requests
  opaque OpaqueDeviceConfiguration
DeviceAllocationResult
  config [DeviceAllocationConfiguration]
  results [DeviceRequestAllocationResult]
DeviceAttribute
  string: string version
  number: int
  bool: bool
  [string]: strings versions
  bools [bool]
  ints [number]
DeviceCapacity
  any: value
  requestPolicy CapacityRequestPolicy
DeviceClaim
  config [DeviceClaimConfiguration]
  constraints [DeviceConstraint]
  requests [DeviceRequest]
DeviceClaimConfiguration
  [string]: requests
  opaque OpaqueDeviceConfiguration
DeviceClass
  string: apiVersion kind
  metadata ObjectMeta
  spec DeviceClassSpec
DeviceClassConfiguration
  opaque OpaqueDeviceConfiguration
DeviceClassSpec
  string: extendedResourceName
  config [DeviceClassConfiguration]
  selectors [DeviceSelector]
DeviceConstraint
  string: distinctAttribute matchAttribute
  [string]: requests
DeviceCounterConsumption
  string: counterSet
  [string]: compatibilityGroups
  counters {Counter}
DeviceDerivedAttribute
  string: expression name
DeviceRequest
  string: name
  exactly ExactDeviceRequest
  firstAvailable [DeviceSubRequest]
DeviceRequestAllocationResult
  string: device driver pool request shareID
  bool: adminAccess
  [string]: bindingConditions bindingFailureConditions
  {any}: consumedCapacity
  skipNodeOperations [string set]
  tolerations [DeviceToleration]
DeviceSelector
  cel CELDeviceSelector
DeviceSubRequest
  string: allocationMode deviceClassName name
  number: count
  capacity CapacityRequirements
  derivedAttributes [DeviceDerivedAttribute]
  selectors [DeviceSelector]
  tolerations [DeviceToleration]
DeviceTaint
  string: effect key value
  any: timeAdded
DeviceTaintRule
  string: apiVersion kind
  metadata ObjectMeta
  spec DeviceTaintRuleSpec
  status DeviceTaintRuleStatus
DeviceTaintRuleSpec
  deviceSelector DeviceTaintSelector
  taint DeviceTaint
DeviceTaintRuleStatus
  conditions [Condition by type] | merge type
DeviceTaintSelector
  string: device deviceClassName driver pool
  selectors [DeviceSelector]
DeviceToleration
  string: effect key operator value
  number: tolerationSeconds
ExactDeviceRequest
  string: allocationMode deviceClassName
  number: count
  bool: adminAccess
  capacity CapacityRequirements
  derivedAttributes [DeviceDerivedAttribute]
  selectors [DeviceSelector]
  tolerations [DeviceToleration]
NetworkDeviceData
  string: hardwareAddress interfaceName
  [string]: ips
NodeAllocatableMapping
  string: capacityKey
  any: capacityMultiplier deviceMultiplier
NodeAllocatableOverhead
  any: perContainer perPod
NodeAllocatableResource
  mapping NodeAllocatableMapping
  overhead NodeAllocatableOverhead
OpaqueDeviceConfiguration
  string: driver
  parameters json
ResourceClaim
  string: apiVersion kind
  metadata ObjectMeta
  spec ResourceClaimSpec
  status ResourceClaimStatus
ResourceClaimConsumerReference
  string: apiGroup name resource uid
ResourceClaimSpec
  devices DeviceClaim
ResourceClaimStatus
  allocation AllocationResult
  devices [AllocatedDeviceStatus by driver device pool shareID?]
  reservedFor [ResourceClaimConsumerReference by uid] | merge uid
ResourceClaimTemplate
  string: apiVersion kind
  metadata ObjectMeta
  spec ResourceClaimTemplateSpec
ResourceClaimTemplateSpec
  metadata ObjectMeta
  spec ResourceClaimSpec
ResourcePool
  string: name
  number: generation resourceSliceCount
ResourceSlice
  string: apiVersion kind
  metadata ObjectMeta
  spec ResourceSliceSpec
ResourceSliceSpec
  string: driver nodeName partitionTypeAttribute
  bool: allNodes perDeviceNodeSelection
  devices [Device]
  nodeSelector NodeSelector
  pool ResourcePool
  sharedCounters [CounterSet]
  skipNodeOperations [string set]
"""

V1BETA1 = """\
BasicDevice
  string: nodeName
  bool: allNodes allowMultipleAllocations bindsToNode
  [string]: bindingConditions bindingFailureConditions
  attributes {DeviceAttribute}
  capacity {DeviceCapacity}
  consumesCounters [DeviceCounterConsumption]
  nodeAllocatableResources {NodeAllocatableResource}
  nodeSelector NodeSelector
  taints [DeviceTaint]
Device
  string: name
  basic BasicDevice
DeviceRequest
  string: allocationMode deviceClassName name
  number: count
  bool: adminAccess
  capacity CapacityRequirements
  derivedAttributes [DeviceDerivedAttribute]
  firstAvailable [DeviceSubRequest]
  selectors [DeviceSelector]
  tolerations [DeviceToleration]
"""

V1ALPHA3 = """\
PartitionTypeStatus
  string: attribute type
  number: allocatable total
PoolStatus
  string: driver nodeName poolName validationError
  number: allocatedDevices availableDevices generation resourceSliceCount totalDevices
  number: unavailableDevices
  partitionSummary [PartitionTypeStatus]
  shareableSummary ShareableSummaryStatus
ResourcePoolStatusRequest
  string: apiVersion kind
  metadata ObjectMeta
  spec ResourcePoolStatusRequestSpec
  status ResourcePoolStatusRequestStatus
ResourcePoolStatusRequestSpec
  string: defaultPartitionTypeAttribute driver poolName
  number: limit
ResourcePoolStatusRequestStatus
  number: poolCount
  conditions [Condition by type] | merge type
  pools [PoolStatus]
ShareableCapacityStatus
  string: name
  any: available consumed total
ShareableSummaryStatus
  number: fullyAvailableDevices partiallyAvailableDevices
  capacity [ShareableCapacityStatus]
"""
