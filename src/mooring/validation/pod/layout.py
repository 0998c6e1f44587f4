"""Pod specs as Kubernetes shows them in errors.

An update that changes what may not change is answered with the lines of the spec that differ, in
the form of `golayout`. Volumes of rare sorts and claims for volumes are shown as users write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.api.codec import to_tree
from mooring.api.core.pod import PodSpec
from mooring.validation.golayout import Layouts, go_json


def internal_lines(spec: PodSpec) -> list[str]:
    """Return the lines of a spec in Kubernetes' internal form."""
    text = go_json(_LAYOUTS.shown(to_tree(spec), "PodSpec"), indent=1)
    return [f"{line}\n" for line in text.split("\n")]


def internal_form(tree: Mapping[str, Any], name: str) -> Any:
    """Return a part of a spec in Kubernetes' internal form, by the name of its type."""
    return _LAYOUTS.shown(dict(tree), name)


_LAYOUTS = Layouts("""\
PodSpec Volumes:[Volume InitContainers:[Container Containers:[Container
    EphemeralContainers:[EphemeralContainer RestartPolicy:s TerminationGracePeriodSeconds:*i
    ActiveDeadlineSeconds:*i DNSPolicy:s NodeSelector:{s ServiceAccountName:s
    DeprecatedServiceAccount=serviceAccount:s AutomountServiceAccountToken:*b NodeName:s
    HostNetwork:b HostPID:b HostIPC:b ShareProcessNamespace:*b SecurityContext:*PodSecurityContext
    ImagePullSecrets:[LocalObjectReference Hostname:s Subdomain:s Affinity:*Affinity
    SchedulerName:s Tolerations:[Toleration HostAliases:[HostAlias PriorityClassName:s Priority:*i
    DNSConfig:*PodDNSConfig ReadinessGates:[PodReadinessGate RuntimeClassName:*s
    EnableServiceLinks:*b PreemptionPolicy:*s Overhead:{q
    TopologySpreadConstraints:[TopologySpreadConstraint SetHostnameAsFQDN:*b OS:*PodOS
    HostUsers:*b SchedulingGates:[PodSchedulingGate ResourceClaims:[PodResourceClaim
    Resources:*ResourceRequirements HostnameOverride:*s SchedulingGroup:*PodSchedulingGroup
    EvictionResponders:[EvictionResponder
Volume Name:s +VolumeSource
VolumeSource HostPath:*HostPathVolumeSource EmptyDir:*EmptyDirVolumeSource GCEPersistentDisk:*any
    AWSElasticBlockStore:*any GitRepo:*any Secret:*SecretVolumeSource NFS:*any ISCSI:*any
    Glusterfs:*any PersistentVolumeClaim:*PersistentVolumeClaimVolumeSource RBD:*any
    FlexVolume:*any Cinder:*any CephFS:*any Flocker:*any DownwardAPI:*DownwardAPIVolumeSource
    FC:*any AzureFile:*any ConfigMap:*ConfigMapVolumeSource VsphereVolume:*any Quobyte:*any
    AzureDisk:*any PhotonPersistentDisk:*any Projected:*ProjectedVolumeSource PortworxVolume:*any
    ScaleIO:*any StorageOS:*any CSI:*CSIVolumeSource Ephemeral:*any Image:*ImageVolumeSource
HostPathVolumeSource Path:s Type:*s
EmptyDirVolumeSource Medium:s SizeLimit:*q Mode:*i
SecretVolumeSource SecretName:s Items:[KeyToPath DefaultMode:*i Optional:*b DefaultUser:*i
KeyToPath Key:s Path:s Mode:*i User:*i
PersistentVolumeClaimVolumeSource ClaimName:s ReadOnly:b
DownwardAPIVolumeSource Items:[DownwardAPIVolumeFile DefaultMode:*i DefaultUser:*i
DownwardAPIVolumeFile Path:s FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector
    Mode:*i User:*i
ObjectFieldSelector APIVersion:s FieldPath:s
ResourceFieldSelector ContainerName:s Resource:s Divisor:q
ConfigMapVolumeSource +LocalObjectReference Items:[KeyToPath DefaultMode:*i Optional:*b
    DefaultUser:*i
LocalObjectReference Name:s
ProjectedVolumeSource Sources:[VolumeProjection DefaultMode:*i DefaultUser:*i
VolumeProjection Secret:*SecretProjection DownwardAPI:*DownwardAPIProjection
    ConfigMap:*ConfigMapProjection ServiceAccountToken:*ServiceAccountTokenProjection
    ClusterTrustBundle:*ClusterTrustBundleProjection PodCertificate:*PodCertificateProjection
SecretProjection +LocalObjectReference Items:[KeyToPath Optional:*b
DownwardAPIProjection Items:[DownwardAPIVolumeFile
ConfigMapProjection +LocalObjectReference Items:[KeyToPath Optional:*b
ServiceAccountTokenProjection Audience:s ExpirationSeconds:*i Path:s User:*i
ClusterTrustBundleProjection Name:*s SignerName:*s LabelSelector:*any Optional:*b Path:s User:*i
PodCertificateProjection SignerName:s KeyType:s MaxExpirationSeconds:*i CredentialBundlePath:s
    KeyPath:s CertificateChainPath:s UserAnnotations:{s User:*i
CSIVolumeSource Driver:s ReadOnly:*b FSType:*s VolumeAttributes:{s
    NodePublishSecretRef:*LocalObjectReference
ImageVolumeSource Reference:s PullPolicy:s
Container Name:s Image:s Command:[s Args:[s WorkingDir:s Ports:[ContainerPort
    EnvFrom:[EnvFromSource Env:[EnvVar Resources:ResourceRequirements
    ResizePolicy:[ContainerResizePolicy RestartPolicy:*s RestartPolicyRules:[ContainerRestartRule
    VolumeMounts:[VolumeMount VolumeDevices:[VolumeDevice LivenessProbe:*Probe
    ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:s
    TerminationMessagePolicy:s ImagePullPolicy:s SecurityContext:*SecurityContext Stdin:b
    StdinOnce:b TTY:b
ContainerPort Name:s HostPort:i ContainerPort:i Protocol:s HostIP:s
EnvFromSource Prefix:s ConfigMapRef:*ConfigMapEnvSource SecretRef:*SecretEnvSource
ConfigMapEnvSource +LocalObjectReference Optional:*b
SecretEnvSource +LocalObjectReference Optional:*b
EnvVar Name:s Value:s ValueFrom:*EnvVarSource
EnvVarSource FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector
    ConfigMapKeyRef:*ConfigMapKeySelector SecretKeyRef:*SecretKeySelector
    FileKeyRef:*FileKeySelector
ConfigMapKeySelector +LocalObjectReference Key:s Optional:*b
SecretKeySelector +LocalObjectReference Key:s Optional:*b
FileKeySelector VolumeName:s Path:s Key:s Optional:*b
ResourceRequirements Limits:{q Requests:{q Claims:[ResourceClaim
ResourceClaim Name:s Request:s
ContainerResizePolicy ResourceName:s RestartPolicy:s
ContainerRestartRule Action:s ExitCodes:*ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes Operator:s Values:[i
VolumeMount Name:s ReadOnly:b RecursiveReadOnly:*s MountPath:s SubPath:s MountPropagation:*s
    SubPathExpr:s BindMountOptions:[s
VolumeDevice Name:s DevicePath:s
Probe +ProbeHandler InitialDelaySeconds:i TimeoutSeconds:i PeriodSeconds:i SuccessThreshold:i
    FailureThreshold:i TerminationGracePeriodSeconds:*i
ProbeHandler Exec:*ExecAction HTTPGet:*HTTPGetAction TCPSocket:*TCPSocketAction GRPC:*GRPCAction
ExecAction Command:[s
HTTPGetAction Path:s Port:any Host:s Scheme:s HTTPHeaders:[HTTPHeader Protocol:*s
HTTPHeader Name:s Value:s
TCPSocketAction Port:any Host:s
GRPCAction Port:i Service:*s Mode:*s
Lifecycle PostStart:*LifecycleHandler PreStop:*LifecycleHandler StopSignal:*s
LifecycleHandler Exec:*ExecAction HTTPGet:*HTTPGetAction TCPSocket:*TCPSocketAction
    Sleep:*SleepAction
SleepAction Seconds:i
SecurityContext Capabilities:*Capabilities Privileged:*b SELinuxOptions:*SELinuxOptions
    WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*i RunAsGroup:*i RunAsNonRoot:*b
    ReadOnlyRootFilesystem:*b AllowPrivilegeEscalation:*b ProcMount:*s
    SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile
Capabilities Add:[s Drop:[s
SELinuxOptions User:s Role:s Type:s Level:s
WindowsSecurityContextOptions GMSACredentialSpecName:*s GMSACredentialSpec:*s RunAsUserName:*s
    HostProcess:*b
SeccompProfile Type:s LocalhostProfile:*s
AppArmorProfile Type:s LocalhostProfile:*s
EphemeralContainer +EphemeralContainerCommon TargetContainerName:s
EphemeralContainerCommon Name:s Image:s Command:[s Args:[s WorkingDir:s Ports:[ContainerPort
    EnvFrom:[EnvFromSource Env:[EnvVar Resources:ResourceRequirements
    ResizePolicy:[ContainerResizePolicy RestartPolicy:*s RestartPolicyRules:[ContainerRestartRule
    VolumeMounts:[VolumeMount VolumeDevices:[VolumeDevice LivenessProbe:*Probe
    ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:s
    TerminationMessagePolicy:s ImagePullPolicy:s SecurityContext:*SecurityContext Stdin:b
    StdinOnce:b TTY:b
PodSecurityContext SELinuxOptions:*SELinuxOptions WindowsOptions:*WindowsSecurityContextOptions
    RunAsUser:*i RunAsGroup:*i RunAsNonRoot:*b SupplementalGroups:[i SupplementalGroupsPolicy:*s
    FSGroup:*i Sysctls:[Sysctl FSGroupChangePolicy:*s SeccompProfile:*SeccompProfile
    AppArmorProfile:*AppArmorProfile SELinuxChangePolicy:*s
Sysctl Name:s Value:s
Affinity NodeAffinity:*NodeAffinity PodAffinity:*PodAffinity PodAntiAffinity:*PodAntiAffinity
NodeAffinity RequiredDuringSchedulingIgnoredDuringExecution:*NodeSelector
    PreferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm
NodeSelector NodeSelectorTerms:[NodeSelectorTerm
NodeSelectorTerm MatchExpressions:[NodeSelectorRequirement MatchFields:[NodeSelectorRequirement
NodeSelectorRequirement Key:s Operator:s Values:[s
PreferredSchedulingTerm Weight:i Preference:NodeSelectorTerm
PodAffinity RequiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm
    PreferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm
PodAffinityTerm LabelSelector:*any Namespaces:[s TopologyKey:s NamespaceSelector:*any
    MatchLabelKeys:[s MismatchLabelKeys:[s
WeightedPodAffinityTerm Weight:i PodAffinityTerm:PodAffinityTerm
PodAntiAffinity RequiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm
    PreferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm
Toleration Key:s Operator:s Value:s Effect:s TolerationSeconds:*i
HostAlias IP:s Hostnames:[s
PodDNSConfig Nameservers:[s Searches:[s Options:[PodDNSConfigOption
PodDNSConfigOption Name:s Value:*s
PodReadinessGate ConditionType:s
TopologySpreadConstraint MaxSkew:i TopologyKey:s WhenUnsatisfiable:s LabelSelector:*any
    MinDomains:*i NodeAffinityPolicy:*s NodeTaintsPolicy:*s MatchLabelKeys:[s
PodOS Name:s
PodSchedulingGate Name:s
PodResourceClaim Name:s ResourceClaimName:*s ResourceClaimTemplateName:*s
PodSchedulingGroup PodGroupName:*s
EvictionResponder Name:s Priority:*i""")
