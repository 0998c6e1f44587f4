"""The gates of Kubernetes 1.37 that switch nothing in Mooring.

`--feature-gates` takes them as Kubernetes' components do, so that flags can be shared with a
cluster. A row of the table has the gate's name and its history, oldest first:

    A24-  alpha since 1.24, off by default
    B30+  beta since 1.30, on by default
    G33+! stable since 1.33, on by default, locked
    D35-  deprecated since 1.35, off by default
    G0+   as it was before gates had histories
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# A gate that is on needs all of these on. Sorted by name, as Kubernetes reports them.
INERT_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "DeclarativeValidationBeta": ("DeclarativeValidation",),
    "DeclarativeValidationTakeover": ("DeclarativeValidation",),
    "DisableAllocatorDualWrite": ("MultiCIDRServiceAllocator",),
    "EventedPLEG": ("PLEGOnDemandRelist",),
    "ExtendWebSocketsToKubelet": ("NodeDeclaredFeatures",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "H2CContainerProbe": ("NodeDeclaredFeatures",),
    "ImageVolumeWithDigest": ("ImageVolume",),
    "InPlacePodLevelResourcesVerticalScaling": (
        "InPlacePodVerticalScaling",
        "NodeDeclaredFeatures",
        "PodLevelResources",
    ),
    "InPlacePodVerticalScalingExclusiveCPUs": ("InPlacePodVerticalScaling",),
    "InPlacePodVerticalScalingExclusiveMemory": ("InPlacePodVerticalScaling",),
    "InPlacePodVerticalScalingInitContainers": (
        "InPlacePodVerticalScaling",
        "NodeDeclaredFeatures",
    ),
    "InPlacePodVerticalScalingMemoryBackedVolumes": (
        "InPlacePodVerticalScaling",
        "NodeDeclaredFeatures",
    ),
    "InPlacePodVerticalScalingSchedulerPreemption": ("InPlacePodVerticalScaling",),
    "KubeletAllocatedPodsEndpoint": ("InPlacePodVerticalScaling",),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "NodeControllerLeaseCircuitBreaker": ("AtomicFIFO",),
    "PodLevelResourceManagers": ("PodLevelResources",),
    "PodLevelResourcesFixDefaulting": ("PodLevelResources",),
    "PodLevelResourcesFixKubeletQOSClass": ("PodLevelResources",),
    "ProcMountType": ("UserNamespacesSupport",),
    "RestartAllContainersOnContainerExits": (
        "ContainerRestartRules",
        "NodeDeclaredFeatures",
    ),
    "ServiceAccountTokenNodeBinding": ("ServiceAccountTokenNodeBindingValidation",),
    "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
    "StaleControllerConsistencyHPA": ("AtomicFIFO",),
    "StaleControllerConsistencyJob": ("AtomicFIFO",),
    "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
    "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
    "StorageVersionAPI": ("APIServerIdentity",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "UserNamespacesHostNetworkSupport": (
        "NodeDeclaredFeatures",
        "UserNamespacesSupport",
    ),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
}

INERT_HISTORY: Final = """\
APIResponseCompression A8- B16+
APIServerIdentity A20- B26+
APIServerWebhookAuthenticationToken A37-
APIServingWithRoutine A30-
AggregatedDiscoveryRemoveBetaType G0- D33+ D35+!
AllowDNSOnlyNodeCSR G0+ D31-
AllowInsecureKubeletCertificateSigningRequests G0+ D31-
AllowOverwriteTerminationGracePeriodSeconds G0+ D32- D35-!
AllowParsingUserUIDFromCertAuth B33+
AllowServiceExternalIPs G0+
AllowUnsafeMalformedObjectDeletion A32- B37+
AtomicFIFO B36+
AtomicWriteVolumeUserFields A37-
AuthorizePodWebsocketUpgradeCreatePermission B35+
CBORServingAndStorage A32-
CPUManagerPolicyAlphaOptions A23-
CPUManagerPolicyBetaOptions B23+
CPUManagerPolicyOptions A22- B23+ G33+!
CRDObservedGenerationTracking B35- B36+
CRDValidationRatcheting A28- B30+ G33+!
CRIListStreaming A36-
CSIServiceAccountTokenSecrets B35+ G36+!
CSIVolumeHealth A21-
ChangeContainerStatusOnKubeletRestart G0+ D35-
ClearingNominatedNodeNameAfterBinding A34- B35+
ClientsAllowCARotation B36+
ClientsAllowCBOR A32-
ClientsAllowTLSCacheGC B36+
ClientsPreferCBOR A32-
CloudControllerManagerWatchBasedRoutesReconciliation A35-
CloudControllerManagerWebhook A27-
ClusterTrustBundle A27- B33- G37+
ClusterTrustBundleProjection A29- B33- G37+
ComponentFlagz A32- B36+
ComponentStatusz A32- B36+
ConcurrentWatchObjectDecode B31- B37+
ConsistentListFromCacheSkipTimeoutFallback A37-
ConstrainedImpersonation A35- B36+
ContainerCheckpoint A25- B30+
ContainerRestartRules A34- B35+
ContainerStopSignals A33-
ContextualLogging A24- B30+
ControllerManagerReleaseLeaderElectionLockOnExit A36-
CoordinatedLeaderElection A31- B33-
CrossNamespaceVolumeDataSource A26-
CustomCPUCFSQuotaPeriod A12- G36+
CustomResourceFieldSelectors A30- B31+ G32+!
DeclarativeValidation B33+ G36+!
DeclarativeValidationBeta B36+
DeclarativeValidationTakeover B33- D36- D37-!
DefaultPodSysctls A37-
DeploymentReplicaSetTerminatingReplicas A33- B35+
DetectCacheInconsistency B34+
DisableAllocatorDualWrite A31- B33- G34+ G35+!
DisableCPUQuotaWithExclusiveCPUs B33+ D36+ D37+!
DisableNodeKubeProxyVersion A29- D31- D33+ D36+!
EmptyDirVolumeMode A37-
EnvFiles A34- B35+
EtcdRangeStream B37+
EventedPLEG A26-
EvictionRequestAPI A37-
ExcludeAdmissionWebhookVirtualResources B37+
ExecProbeTimeout G20+ G35+!
ExtendWebSocketsToKubelet B36+
ExternalServiceAccountTokenSigner A32- B34+ G36+!
GRPCContainerProbeTLS A37-
GitRepoVolumeDriver G0+ D33- D36-!
GracefulNodeShutdown A20- B21+
GracefulNodeShutdownBasedOnPodPriority A23- B24+
H2CContainerProbe A37-
HPAConfigurableTolerance A33- B35+ G37+!
HPAGeneration B37+
HPAOptimizedSelectorStore B37+
HPAScaleToZero A16- B37+
HostnameOverride A34- B35+ G37+!
HugepageAwareEviction B37+
ImageMaximumGCAge A29- B30+ G35+!
ImageVolume A31- B33- B35+ G36+!
ImageVolumeWithDigest A35-
InOrderInformers B33+ G36+!
InOrderInformersBatchProcess B35+
InPlacePodLevelResourcesVerticalScaling A35- B36+
InPlacePodVerticalScaling A27- B33+ G35+!
InPlacePodVerticalScalingExclusiveCPUs A32-
InPlacePodVerticalScalingExclusiveMemory A34-
InPlacePodVerticalScalingInitContainers B36+ G37+!
InPlacePodVerticalScalingMemoryBackedVolumes A37-
InPlacePodVerticalScalingSchedulerPreemption A37-
InformerResourceVersion A30- G35+
InterPodAffinityHostnameFastPath A37-
JobManagedBy A30- B32+ G35+!
KMSv1 G0+ D28+ D29-
KubeProxyIPVS G0+ D37+
KubeProxyNFTablesLocalhostNodePorts A37-
KubeletAllocatedPodsEndpoint A37-
KubeletCgroupDriverFromCRI A28- B31+ G34+!
KubeletCrashLoopBackOffMax A32- B35+
KubeletEnsureSecretPulledImages A33- B35+
KubeletFineGrainedAuthz A32- B33+ G36+!
KubeletInUserNamespace A22- B37+
KubeletPSI A33- B34+ G36+!
KubeletRegistrationGetOnExistsOnly G0+ D32-
KubeletSeparateDiskGC A29- B31+
KubeletServiceAccountTokenForCredentialProviders A33- B34+
KubeletTracing A25- B27+ G34+!
ListFromCacheSnapshot A33- B34+
LocalStorageCapacityIsolationFSQuotaMonitoring A15- B31-
LoggingAlphaOptions A24-
LoggingBetaOptions B24+
ManifestBasedAdmissionControlConfig A36- B37+
MatchLabelKeysInPodAffinity A29- B31+ G33+!
MatchLabelKeysInPodTopologySpread A25- B27+
MatchLabelKeysInPodTopologySpreadSelectorMerge B34+
MaxUnavailableStatefulSet A24- B35- B37+
MemoryQoS A22- B37+
MultiCIDRServiceAllocator A27- B31- G33+ G34+!
MutableCSINodeAllocatableCount A33- B34- B35+ G36+!
MutablePVNodeAffinity A35-
MutablePodResourcesForSuspendedJobs A35- B36+
MutableSchedulingDirectivesForSuspendedJobs A35- B36+
MutatingAdmissionPolicy A32- B34- G36+
NFTablesNetlink B37+
NFTablesProxyMode A29- B31+ G33+!
NativeHistograms A36- B37+
NodeControllerLeaseCircuitBreaker B37+
NodeInclusionPolicyInPodTopologySpread A25- B26+ G33+!
NodeLifecycleConditions A37-
NodeLogQuery A27- B30- G36+!
NodeSwap A22- B28- B30+ G34+!
NominatedNodeNameForExpectation A34- B35+
OpenAPIEnums A23- B24+
OpportunisticBatching B35+
PLEGOnDemandRelist B36+ G37+!
PersistentVolumeClaimUnusedSinceTime A36- B37+
PodAndContainerStatsFromCRI A23- B37-
PodCertificateRequest A34- B35- G37+
PodDeletionCost A21- B22+
PodLevelResourceManagers A36- B37-
PodLevelResources A32- B34+
PodLevelResourcesFixDefaulting B37+
PodLevelResourcesFixKubeletQOSClass B37+
PodLogsQuerySplitStreams A32-
PodObservedGenerationTracking A33- B34+ G35+!
PodReadyToStartContainersCondition A28- B29+ G37+!
PodSchedulingReadiness A26- B27+ G30+!
PodTopologyLabelsAdmission A33- B35+
PodsAPI A36- B37+
PortForwardWebsockets A30- B31+
PreferSameTrafficDistribution A33- B34+ G35+!
ProcMountType A12- B31- B33+ G36+!
QOSReserved A11-
RecoverVolumeExpansionFailure A23- B32+ G34+!
RecursiveReadOnlyMounts A30- B31+ G33+!
ReduceDefaultCrashLoopBackOffDecay A33-
RelaxedEnvironmentVariableValidation A30- B32+ G34+!
RelaxedServiceNameValidation A34- B36+ G37+!
ReloadKubeletClientCAFile B36+
ReloadKubeletServerCertificateFile B31+
RemoteRequestHeaderUID A32- B33+
RestartAllContainersOnContainerExits A35- B36+
RotateKubeletServerCertificate A7- B12+
RuntimeClassInImageCriApi A29-
SELinuxChangePolicy A32- B33+ G36+!
SELinuxMount A30- B33- G37+
SELinuxMountReadWriteOncePod A25- B27- B28+ G36+!
SchedulerAsyncAPICalls B34-
SchedulerAsyncPreemption A32- B33+
SchedulerPopFromBackoffQ B33+
SchedulerPreQueueingHints A37-
SeparateCacheWatchRPC B28+ D33- D36-!
SeparateTaintEvictionController B29+ G34+!
ServiceAccountNodeAudienceRestriction B32- B33+
ServiceAccountTokenJTI A29- B30+ G32+!
ServiceAccountTokenNodeBinding A29- B31+ G33+!
ServiceAccountTokenNodeBindingValidation A29- B30+ G32+!
ServiceAccountTokenPodNodeInfo A29- B30+ G32+!
ServiceCIDRStatusFieldWiping G0- D36+
ShardedListAndWatch A36-
SizeBasedListCostEstimate B34+
StaleControllerConsistencyDaemonSet B36+
StaleControllerConsistencyHPA B37+
StaleControllerConsistencyJob B36+
StaleControllerConsistencyReplicaSet B36+
StaleControllerConsistencyStatefulSet B36+
StatefulSetRecreateStrategy A37-
StatefulSetSemanticRevisionComparison B0+
StorageCapacityScoring A33- B37+
StorageNamespaceIndex B30+ D33+
StorageVersionAPI A20-
StorageVersionHash A14- B15+
StorageVersionMigrator A30- B35- G37+
StrictIPCIDRValidation A33- B36+
StructuredAuthenticationConfigurationEgressSelector B34+
StructuredAuthenticationConfigurationJWKSMetrics B35+
SupplementalGroupsPolicy A31- B33+ G35+!
SystemdWatchdog B32+ G35+!
TaintTolerationComparisonOperators A35-
TokenRequestServiceAccountUIDValidation B34+
TopologyManagerPolicyAlphaOptions A26-
TopologyManagerPolicyBetaOptions B26- B28+
TopologyManagerPolicyOptions A26- B28+ G32+!
TranslateStreamCloseWebsocketRequests A29- B30+
UnauthenticatedHTTP2DOSMitigation B25- B29+
UnknownVersionInteroperabilityProxy A28- B36+
UnlockWhileProcessingFIFO B36+
UserNamespacesHostNetworkSupport A35-
UserNamespacesSupport A25- B30- B33+ G36+!
VolumeAttributesClass A29- B31- G34+ G36+!
VolumeBindMountOptions A37-
VolumeLimitScaling A35- B37+
WatchCacheInitializationPostStartHook B31- B36+ G37+!
WatchList A27- B32+ B33- B34+
WatchListClient B30- B35+
WatchListCompression B37+
WebhookRoundTripLoadBalancing B37+
WinDSR A14- B33+ G34+!
WinOverlay A14- B20+ G34+!
WindowsCPUAndMemoryAffinity A32-
WindowsGracefulNodeShutdown A32- B34+
WindowsHostNetwork A26- D33-
"""
