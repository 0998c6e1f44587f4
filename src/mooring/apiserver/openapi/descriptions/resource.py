"""Words for the fields of resource.k8s.io."""

# ruff: noqa: E501 (a field and its words stand on one line)

from __future__ import annotations

RESOURCE = """\
AllocatedDeviceStatus
  conditions: What the driver observes of the device; binding conditions among it.
  data: JSON that only the driver and its users understand.
  device: Name of the device in its pool.
  driver: Driver of the device.
  networkData: How a network device can be reached.
  pool: Pool of the device.
  shareID: Which share of the device this is about, if it is shared.
AllocationResult
  allocationTimestamp: When the devices were given.
  devices: The devices.
  nodeSelector: Nodes on which the devices can be used; all if there is none.
CELDeviceSelector
  expression: CEL over `device`: driver, attributes, capacity and allowMultipleAllocations. It must give a boolean; a device for which it is true is wanted. A lookup of what a device does not have is an error, so ask `has` or `in` first.
CapacityRequestPolicy
  default: Amount that a request consumes if it names none.
  validRange: Amounts that may be consumed, as a range. At most one of validRange and validValues is set.
  validValues: Amounts that may be consumed, in ascending order; a request gets the next one that is enough.
CapacityRequestPolicyRange
  max: Largest amount; without it, the whole capacity.
  min: Smallest amount.
  step: Amounts go up from min by this; a request is rounded up.
CapacityRequirements
  requests: Amounts by name of the capacity. A device that has less is not chosen; of a shareable device this much is consumed.
Counter
  value: The amount.
CounterSet
  counters: The counters by name.
  name: Name of the set in its pool.
Device
  basic: Everything else of the device.
  name: Name of the device, unique in its pool; a DNS label.
DeviceAllocationConfiguration
  opaque: Parameters for the driver.
  requests: Requests that it is for; all if there are none.
  source: FromClass or FromClaim: where it comes from.
DeviceAllocationResult
  config: Configuration from the classes and the claim, in the order in which it applies.
  results: The devices, one entry each.
DeviceAttribute
  bool: A truth value.
  bools: Several truth values.
  int: A whole number.
  ints: Several whole numbers.
  string: A text.
  strings: Several texts.
  version: A semantic version (semver.org, 2.0.0).
  versions: Several semantic versions.
DeviceCapacity
  requestPolicy: How much of it one request may consume, if the device is shareable.
  value: How much there is.
DeviceClaim
  config: Configuration for the devices.
  constraints: Rules over the devices of several requests.
  requests: The devices that are wanted; each request must get its devices, or the claim gets none.
DeviceClaimConfiguration
  opaque: Parameters for the driver.
  requests: Requests that it is for, alternatives as REQUEST/ALTERNATIVE; all if there are none.
DeviceClass
  spec: Which devices are in the class, and how they are configured.
DeviceClassConfiguration
  opaque: Parameters for the driver.
DeviceClassSpec
  config: Configuration for every device of the class.
  extendedResourceName: Name under which pods may ask for devices of the class as an extended resource.
  selectors: Conditions that a device must meet; all of them.
DeviceConstraint
  distinctAttribute: Attribute that must have another value in each of the devices; with its domain.
  matchAttribute: Attribute that must have the same value in all of the devices; with its domain.
  requests: Requests that it is about; all if there are none.
DeviceCounterConsumption
  compatibilityGroups: Groups of devices that may take of the set at the same time.
  counterSet: Name of the set.
  counters: How much of each counter the device takes.
DeviceDerivedAttribute
  expression: CEL over `device` that gives the value.
  name: Name of the attribute, by which constraints know it.
DeviceRequest
  adminAccess: Whether to look at devices that others use; allowed in namespaces for administrators only.
  exactly: The devices that are wanted. Exactly one of exactly and firstAvailable is set.
  firstAvailable: Alternatives in order of preference; the first that can be met is taken.
  name: Name of the request, unique in its claim; a DNS label.
DeviceRequestAllocationResult
  adminAccess: Whether the device was given for looking at only.
  bindingConditions: Conditions that must be true before the pod goes to the node.
  bindingFailureConditions: Conditions of which one that is true means that the device failed.
  consumedCapacity: How much of each capacity of the device is consumed.
  device: Name of the device in its pool.
  driver: Driver of the device.
  pool: Pool of the device.
  request: Request that got the device, an alternative as REQUEST/ALTERNATIVE.
  shareID: Which share of the device it is, if it is shared.
  skipNodeOperations: Steps on the node that are left out for this device.
  tolerations: Taints that the request puts up with, as they were when the device was given.
DeviceSelector
  cel: A condition in CEL.
DeviceSubRequest
  name: Name of the alternative, unique in its list; a DNS label.
DeviceTaint
  effect: NoSchedule keeps new pods away, NoExecute makes running ones leave as well, None does nothing.
  key: Name of the taint, with a domain.
  timeAdded: When the taint was added; set by the server if it is missing.
  value: Value of the taint, a label value.
DeviceTaintRule
  spec: The taint and the devices that get it.
  status: How far the eviction is that the rule started.
DeviceTaintRuleSpec
  deviceSelector: Devices that get the taint; all if it is empty, none if it is missing.
  taint: The taint.
DeviceTaintRuleStatus
  conditions: EvictionInProgress among others: whether pods are still to leave.
DeviceTaintSelector
  device: Name of a device in its pool.
  deviceClassName: Class that devices must be in; an extension of Mooring.
  driver: Driver that devices must have.
  pool: Pool that devices must be in.
  selectors: Conditions that devices must meet; an extension of Mooring.
DeviceToleration
  effect: Effect of the taints; all effects if it is empty.
  key: Name of the taints; all names if it is empty, then operator must be Exists.
  operator: Exists, or Equal if the value must be the same.
  tolerationSeconds: How long a taint NoExecute is put up with; for ever if it is missing.
  value: Value of the taints, for Equal.
ExactDeviceRequest
  adminAccess: Whether to look at devices that others use; allowed in namespaces for administrators only.
NetworkDeviceData
  hardwareAddress: MAC address or the like.
  interfaceName: Name of the network interface in the pod.
  ips: Addresses of the interface, in CIDR notation.
NodeAllocatableMapping
  capacityKey: Capacity of the device whose consumed amount counts.
  capacityMultiplier: What the amount of the capacity is multiplied by.
  deviceMultiplier: Amount that each device counts for.
NodeAllocatableOverhead
  perContainer: Amount for each container that uses the device.
  perPod: Amount for each pod that uses the device.
NodeAllocatableResource
  mapping: How an allocation turns into an amount of the node resource.
  overhead: What using the device costs besides.
OpaqueDeviceConfiguration
  driver: Driver that the parameters are for.
  parameters: JSON with an apiVersion and a kind that the driver knows.
PartitionTypeStatus
  allocatable: Devices of the type that could still be given.
  attribute: Attribute that tells types apart.
  total: Devices of the type.
  type: The type, which is a value of the attribute.
PoolStatus
  allocatedDevices: Devices that claims have.
  availableDevices: Devices that could be given.
  driver: Driver of the pool.
  generation: Generation of the pool that was looked at.
  nodeName: Node that the pool belongs to, if it is one.
  partitionSummary: Devices by partition type.
  poolName: Name of the pool.
  resourceSliceCount: Slices of the pool.
  shareableSummary: What shareable devices have left.
  totalDevices: Devices in the pool.
  unavailableDevices: Devices that could not be given, though no claim has them.
  validationError: Why the numbers are missing: the pool is incomplete, or not valid.
ResourceClaim
  spec: What is asked for; it cannot be changed.
  status: The devices that the claim got, and who may use them.
ResourceClaimConsumerReference
  apiGroup: Group of the consumer; empty for core.
  name: Name of the consumer.
  resource: Resource of the consumer, such as pods.
  uid: Identity of the consumer.
ResourceClaimSpec
  devices: The devices that are asked for.
ResourceClaimStatus
  allocation: The devices that the claim got; missing as long as it has none.
  devices: What drivers report of the devices.
  reservedFor: Who may use the claim now; at most 256.
ResourceClaimTemplate
  spec: The claim that is made; it cannot be changed.
ResourceClaimTemplateSpec
  metadata: Labels and annotations that the claim gets.
  spec: What the claim asks for.
ResourcePool
  generation: Number that goes up when the driver changes the pool; slices with a lower one are ignored.
  name: Name of the pool; for devices of a node usually the node's name.
  resourceSliceCount: Slices that the pool has in this generation; until all are there it is incomplete.
ResourcePoolStatusRequest
  spec: Which pools are asked about; it cannot be changed.
  status: The answer; missing as long as there is none.
ResourcePoolStatusRequestSpec
  defaultPartitionTypeAttribute: Attribute that tells partition types apart in pools that name none.
  driver: Driver whose pools are asked about.
  limit: Pools to tell of at most.
  poolName: Pool that is asked about; all pools of the driver if it is missing.
ResourcePoolStatusRequestStatus
  conditions: Complete or Failed, once there is an answer.
  poolCount: Pools that were found; more than are told of, if the limit cut some off.
  pools: The pools.
ResourceSlice
  spec: The devices, or counters.
ResourceSliceSpec
  allNodes: Whether the devices can be used on all nodes. Exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection is set.
  devices: The devices; at most 128, or 64 if any has taints or takes of counters.
  driver: Driver that publishes the slice; a DNS subdomain.
  nodeName: Node that the devices belong to.
  nodeSelector: Nodes on which the devices can be used.
  partitionTypeAttribute: Attribute that tells the partition types of the pool apart.
  perDeviceNodeSelection: Whether each device says itself where it can be used.
  pool: Pool that the slice is part of.
  sharedCounters: Counters that the devices of the pool share; in a slice without devices.
  skipNodeOperations: Steps on the node that the driver does not need.
ShareableCapacityStatus
  available: Amount that is left.
  consumed: Amount that claims have.
  name: Name of the capacity.
  total: Amount of all devices together.
ShareableSummaryStatus
  capacity: The capacities.
  fullyAvailableDevices: Devices of which nothing is consumed.
  partiallyAvailableDevices: Devices of which something is consumed, and something left.
*
  allNodes: Whether the device can be used on all nodes; set if the slice leaves it to its devices.
  allocationMode: ExactCount for a number of devices, or All for all that match.
  allowMultipleAllocations: Whether several claims may use the device at a time, each its share.
  attributes: What the device is like, by name; a name without a domain is in the driver's.
  bindingConditions: Conditions in the claim's status that must be true before a pod goes to the node.
  bindingFailureConditions: Conditions in the claim's status of which one that is true means failure.
  bindsToNode: Whether the device, once given, is usable only on the node that was chosen.
  capacity: Amounts by name: what a device has, or what a request wants.
  consumesCounters: What the device takes of the pool's counters while it is in use.
  count: Devices that are wanted, with ExactCount; 1 if it is missing.
  derivedAttributes: Attributes computed from a device, for the constraints of the claim.
  deviceClassName: Class that the devices must be in.
  nodeAllocatableResources: Node resources, such as cpu, that the device stands for, by name.
  nodeName: Node that it is on or belongs to.
  nodeSelector: Nodes on which it may be.
  selectors: Conditions that a device must meet, besides those of its class.
  taints: Marks that keep others away unless they tolerate them.
  tolerations: Taints that are put up with.
"""
