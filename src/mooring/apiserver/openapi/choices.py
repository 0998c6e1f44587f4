"""Words that fields may have, where they are few: facts from the Go types of Kubernetes 1.37."""

# ruff: noqa: E501 (a field and its words stand on one line)

from __future__ import annotations

from functools import cache

_TABLE = """\
AppArmorProfile.type: Localhost RuntimeDefault Unconfined
AzureDiskVolumeSource.cachingMode: None ReadOnly ReadWrite
AzureDiskVolumeSource.kind: Dedicated Managed Shared
CompositePodGroupSpec.preemptionPolicy: Never PreemptLowerPriority
CompositePodGroupTemplate.preemptionPolicy: Never PreemptLowerPriority
Container.imagePullPolicy: Always IfNotPresent Never
Container.terminationMessagePolicy: FallbackToLogsOnError File
ContainerPort.protocol: SCTP TCP UDP
DeviceAllocationConfiguration.source: FromClaim FromClass
DeviceRequest.allocationMode: All ExactCount
DeviceRequestAllocationResult.skipNodeOperations: * NodePrepareResources NodeUnprepareResources
DeviceSubRequest.allocationMode: All ExactCount
DeviceTaint.effect: NoExecute NoSchedule None
DeviceToleration.effect: NoExecute NoSchedule None
DeviceToleration.operator: Equal Exists
EphemeralContainer.imagePullPolicy: Always IfNotPresent Never
EphemeralContainer.terminationMessagePolicy: FallbackToLogsOnError File
ExactDeviceRequest.allocationMode: All ExactCount
GRPCAction.mode: Plaintext TLS
HTTPGetAction.protocol: HTTP1 HTTP2
HTTPGetAction.scheme: HTTP HTTPS
ImageVolumeSource.pullPolicy: Always IfNotPresent Never
NamespaceStatus.phase: Active Terminating
NodeSelectorRequirement.operator: DoesNotExist Exists Gt In Lt NotIn
NodeStatus.phase: Pending Running Terminated
PersistentVolumeClaimSpec.accessModes: ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod
PersistentVolumeClaimSpec.volumeMode: Block Filesystem
PodGroupSpec.preemptionPolicy: Never PreemptLowerPriority
PodGroupTemplate.preemptionPolicy: Never PreemptLowerPriority
PodSecurityContext.fsGroupChangePolicy: Always OnRootMismatch
PodSecurityContext.supplementalGroupsPolicy: Merge Strict
PodSpec.dnsPolicy: ClusterFirst ClusterFirstWithHostNet Default None
PodSpec.preemptionPolicy: Never PreemptLowerPriority
PodSpec.restartPolicy: Always Never OnFailure
PodStatus.phase: Failed Pending Running Succeeded Unknown
PodStatus.qosClass: BestEffort Burstable Guaranteed
ResourceQuotaSpec.scopes: BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating VolumeAttributesClass
ResourceSliceSpec.skipNodeOperations: * NodePrepareResources NodeUnprepareResources
ScopedResourceSelectorRequirement.operator: DoesNotExist Exists In NotIn
ScopedResourceSelectorRequirement.scopeName: BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating VolumeAttributesClass
SeccompProfile.type: Localhost RuntimeDefault Unconfined
SecurityContext.procMount: Default Unmasked
Taint.effect: NoExecute NoSchedule PreferNoSchedule
Toleration.effect: NoExecute NoSchedule PreferNoSchedule
Toleration.operator: Equal Exists Gt Lt
TopologySpreadConstraint.nodeAffinityPolicy: Honor Ignore
TopologySpreadConstraint.nodeTaintsPolicy: Honor Ignore
TopologySpreadConstraint.whenUnsatisfiable: DoNotSchedule ScheduleAnyway
VolumeHealthCondition.status: DataLoss Degraded Inaccessible
VolumeMount.mountPropagation: Bidirectional HostToContainer None
"""


def choices_of(struct: str, field: str) -> list[str]:
    """Return the words that a field, or the items of its list, may have; none if any will do."""
    return _choices().get(f"{struct}.{field}", [])


@cache
def _choices() -> dict[str, list[str]]:
    lines = (line.partition(":") for line in _TABLE.splitlines())
    return {place: words.split() for place, _, words in lines}
