"""The fields that a struct must have, from the Go types of Kubernetes 1.37: facts, one a line."""

from __future__ import annotations

from functools import cache

_TABLE = """\
AWSElasticBlockStoreVolumeSource: volumeID
AllocatedDeviceStatus: driver pool device
AppArmorProfile: type
AttachedVolume: name devicePath
AzureDiskVolumeSource: diskName diskURI
AzureFileVolumeSource: secretName shareName
Binding: target
CELDeviceSelector: expression
CSIVolumeSource: driver
CapacityRequestPolicyRange: min
CephFSVolumeSource: monitors
CinderVolumeSource: volumeID
ClusterRoleBinding: roleRef
ClusterTrustBundleProjection: path
CompositeGangSchedulingPolicy: minGroupCount
CompositePodGroup: spec
CompositePodGroupSpec: workloadRef schedulingPolicy
CompositePodGroupTemplate: name schedulingPolicy
Condition: type status lastTransitionTime reason message
ConfigMapKeySelector: key
ConfigMapNodeConfigSource: namespace name kubeletConfigKey
Container: name
ContainerExtendedResourceRequest: containerName resourceName requestName
ContainerPort: containerPort
ContainerResizePolicy: resourceName restartPolicy
ContainerRestartRule: action
ContainerRestartRuleOnExitCodes: operator
ContainerStateTerminated: exitCode
ContainerStatus: name ready restartCount image imageID
Counter: value
CounterSet: name counters
DaemonEndpoint: Port
DaemonSet: spec
DaemonSetSpec: selector template
DaemonSetStatus: currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady
Deployment: spec
DeploymentSpec: selector template
Device: name
DeviceAllocationConfiguration: source
DeviceCapacity: value
DeviceCounterConsumption: counterSet counters
DeviceDerivedAttribute: name expression
DeviceRequest: name
DeviceRequestAllocationResult: request driver pool device
DeviceSubRequest: name deviceClassName
DeviceTaint: key effect
DeviceTaintRule: spec
DeviceTaintRuleSpec: taint
DownwardAPIVolumeFile: path
EnvVar: name
EphemeralContainer: name
EventSeries: count lastObservedTime
EvictionResponder: name priority
ExactDeviceRequest: deviceClassName
FileKeySelector: volumeName path key
FlexVolumeSource: driver
GCEPersistentDiskVolumeSource: pdName
GRPCAction: port
GangSchedulingPolicy: minCount
GitRepoVolumeSource: repository
GlusterfsVolumeSource: endpoints path
HTTPGetAction: port
HTTPHeader: name value
HostAlias: ip
HostIP: ip
HostPathVolumeSource: path
ISCSIVolumeSource: targetPortal iqn lun
ImageVolumeStatus: imageRef
JobCondition: type status
JobSpec: template
KeyToPath: key path
LabelSelectorRequirement: key operator
LinuxContainerUser: uid gid
ModifyVolumeStatus: status
NFSVolumeSource: server path
NamespaceCondition: type status
NodeAddress: type address
NodeAllocatableMappedResources: name quantity
NodeAllocatableOverheadResources: name
NodeAllocatableResourceClaimStatus: resourceClaimName
NodeCondition: type status
NodeSelector: nodeSelectorTerms
NodeSelectorRequirement: key operator
NodeSystemInfo: machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion
  kubeletVersion kubeProxyVersion operatingSystem architecture
ObjectFieldSelector: fieldPath
OpaqueDeviceConfiguration: driver parameters
OwnerReference: apiVersion kind name uid
PartitionTypeStatus: attribute type total allocatable
PersistentVolumeClaimCondition: type status
PersistentVolumeClaimTemplate: spec
PersistentVolumeClaimVolumeSource: claimName
PhotonPersistentDiskVolumeSource: pdID
PodAffinityTerm: topologyKey
PodCertificateProjection: signerName keyType
PodCondition: type status
PodExtendedResourceClaimStatus: requestMappings resourceClaimName
PodFailurePolicy: rules
PodFailurePolicyOnExitCodesRequirement: operator values
PodFailurePolicyOnPodConditionsPattern: type
PodFailurePolicyRule: action
PodGroup: spec
PodGroupResourceClaim: name
PodGroupResourceClaimStatus: name
PodGroupSpec: schedulingPolicy
PodGroupTemplate: name schedulingPolicy
PodIP: ip
PodOS: name
PodReadinessGate: conditionType
PodResourceClaim: name
PodResourceClaimStatus: name
PodSchedulingGate: name
PodSpec: containers
PodVolumeHealth: name
PolicyRule: verbs
PoolStatus: driver poolName generation
PortworxVolumeSource: volumeID
PreferredSchedulingTerm: weight preference
QuobyteVolumeSource: registry volume
RBDVolumeSource: monitors image
ReplicaSet: spec
ReplicaSetSpec: selector
ReplicaSetStatus: replicas
ResourceClaim: name
ResourceClaimConsumerReference: resource name uid
ResourceFieldSelector: resource
ResourceHealth: resourceID
ResourcePool: name generation resourceSliceCount
ResourcePoolStatusRequest: metadata spec
ResourcePoolStatusRequestSpec: driver
ResourcePoolStatusRequestStatus: poolCount
ResourceSlice: spec
ResourceSliceSpec: driver pool
ResourceStatus: name
RoleBinding: roleRef
RoleRef: kind name
RuntimeClass: handler
ScaleIOVolumeSource: gateway system secretRef
ScopedResourceSelectorRequirement: scopeName operator
SeccompProfile: type
SecretKeySelector: key
ServiceAccountTokenProjection: path
ShareableCapacityStatus: name total consumed available
ShareableSummaryStatus: fullyAvailableDevices partiallyAvailableDevices
SleepAction: seconds
StatefulSet: spec
StatefulSetSpec: selector template
StatefulSetStatus: replicas
Subject: kind name
SuccessPolicy: rules
Sysctl: name value
TCPSocketAction: port
Taint: key effect
TopologyConstraint: key
TopologySpreadConstraint: maxSkew topologyKey whenUnsatisfiable
TypedLocalObjectReference: kind name
TypedObjectReference: kind name
Volume: name
VolumeDevice: name devicePath
VolumeHealthCondition: status reason
VolumeMount: name mountPath
VolumeMountStatus: name mountPath
VsphereVirtualDiskVolumeSource: volumePath
WeightedPodAffinityTerm: weight podAffinityTerm
Workload: spec
WorkloadPodGroupResourceClaim: name
WorkloadReference: workloadName templateName
"""

# The two groups that have events do not agree on what one must have.
_BY_GROUP = {
    ("", "Event"): ("metadata", "involvedObject"),
    ("", "EventSeries"): (),
    ("events.k8s.io", "Event"): ("eventTime",),
}


def required_fields(group: str, struct: str) -> tuple[str, ...]:
    """Return the fields without which an object is not valid."""
    return _BY_GROUP.get((group, struct), _required().get(struct, ()))


@cache
def _required() -> dict[str, tuple[str, ...]]:
    """STRUCT: FIELD…, which may go on in the next line if that is indented."""
    found: dict[str, tuple[str, ...]] = {}
    struct = ""
    for line in _TABLE.splitlines():
        head, colon, rest = line.partition(":")
        struct = head if colon else struct
        fields = (rest if colon else line).split()
        found[struct] = (*found.get(struct, ()), *fields)
    return found
