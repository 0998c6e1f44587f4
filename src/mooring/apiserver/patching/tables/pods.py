"""The fields of pods (core/v1)."""

# ruff: noqa: E501 (a field and what it means stand on one line)

from __future__ import annotations

PODS = """\
Affinity
  nodeAffinity NodeAffinity
  podAffinity PodAffinity
  podAntiAffinity PodAntiAffinity
AppArmorProfile
  string: localhostProfile type
Capabilities
  [string]: add drop
ConfigMapEnvSource
  string: name
  bool: optional
ConfigMapKeySelector atomic
  string: key name
  bool: optional
Container
  string: image imagePullPolicy name restartPolicy terminationMessagePath
  string: terminationMessagePolicy workingDir
  bool: stdin stdinOnce tty
  [string]: args command
  env [EnvVar by name] | merge name
  envFrom [EnvFromSource]
  lifecycle Lifecycle
  livenessProbe Probe
  ports [ContainerPort by containerPort=0 protocol=TCP] | merge containerPort
  readinessProbe Probe
  resizePolicy [ContainerResizePolicy]
  resources ResourceRequirements
  restartPolicyRules [ContainerRestartRule]
  securityContext SecurityContext
  startupProbe Probe
  volumeDevices [VolumeDevice by devicePath] | merge devicePath
  volumeMounts [VolumeMount by mountPath] | merge mountPath
ContainerExtendedResourceRequest
  string: containerName requestName resourceName
ContainerPort
  string: hostIP name protocol
  number: containerPort hostPort
ContainerResizePolicy
  string: resourceName restartPolicy
ContainerRestartRule
  string: action
  exitCodes ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes
  string: operator
  values [number set]
ContainerState
  running ContainerStateRunning
  terminated ContainerStateTerminated
  waiting ContainerStateWaiting
ContainerStateRunning
  any: startedAt
ContainerStateTerminated
  string: containerID message reason
  number: exitCode signal
  any: finishedAt startedAt
ContainerStateWaiting
  string: message reason
ContainerStatus
  string: containerID image imageID name stopSignal
  number: restartCount
  bool: ready started
  {any}: allocatedResources
  allocatedResourcesStatus [ResourceStatus by name] | merge name
  lastState ContainerState
  resources ResourceRequirements
  state ContainerState
  user ContainerUser
  volumeMounts [VolumeMountStatus by mountPath] | merge mountPath
ContainerUser
  linux LinuxContainerUser
EnvFromSource
  string: prefix
  configMapRef ConfigMapEnvSource
  secretRef SecretEnvSource
EnvVar
  string: name value
  valueFrom EnvVarSource
EnvVarSource
  configMapKeyRef ConfigMapKeySelector
  fieldRef ObjectFieldSelector
  fileKeyRef FileKeySelector
  resourceFieldRef ResourceFieldSelector
  secretKeyRef SecretKeySelector
EphemeralContainer
  string: image imagePullPolicy name restartPolicy targetContainerName
  string: terminationMessagePath terminationMessagePolicy workingDir
  bool: stdin stdinOnce tty
  [string]: args command
  env [EnvVar by name] | merge name
  envFrom [EnvFromSource]
  lifecycle Lifecycle
  livenessProbe Probe
  ports [ContainerPort by containerPort=0 protocol=TCP] | merge containerPort
  readinessProbe Probe
  resizePolicy [ContainerResizePolicy]
  resources ResourceRequirements
  restartPolicyRules [ContainerRestartRule]
  securityContext SecurityContext
  startupProbe Probe
  volumeDevices [VolumeDevice by devicePath] | merge devicePath
  volumeMounts [VolumeMount by mountPath] | merge mountPath
EvictionResponder atomic
  string: name
  number: priority
ExecAction
  [string]: command
FileKeySelector atomic
  string: key path volumeName
  bool: optional
GRPCAction
  string: mode service
  number: port
HTTPGetAction
  string: host path protocol scheme
  any: port
  httpHeaders [HTTPHeader]
HTTPHeader
  string: name value
HostAlias
  string: ip
  [string]: hostnames
HostIP
  string: ip
ImageVolumeStatus
  string: imageRef
Lifecycle
  string: stopSignal
  postStart LifecycleHandler
  preStop LifecycleHandler
LifecycleHandler
  exec ExecAction
  httpGet HTTPGetAction
  sleep SleepAction
  tcpSocket TCPSocketAction
LinuxContainerUser
  number: gid uid
  supplementalGroups [number]
NodeAffinity
  preferredDuringSchedulingIgnoredDuringExecution [PreferredSchedulingTerm]
  requiredDuringSchedulingIgnoredDuringExecution NodeSelector
NodeAllocatableMappedResources
  string: name
  any: quantity
NodeAllocatableOverheadResources
  string: name
  any: perContainer perPod
NodeAllocatableResourceClaimStatus
  string: resourceClaimName
  containers [string set]
  mapping [NodeAllocatableMappedResources by name] | merge name
  overhead [NodeAllocatableOverheadResources by name] | merge name
NodeSelector atomic
  nodeSelectorTerms [NodeSelectorTerm]
NodeSelectorRequirement
  string: key operator
  [string]: values
NodeSelectorTerm atomic
  matchExpressions [NodeSelectorRequirement]
  matchFields [NodeSelectorRequirement]
Pod
  string: apiVersion kind
  metadata ObjectMeta
  spec PodSpec
  status PodStatus
PodAffinity
  preferredDuringSchedulingIgnoredDuringExecution [WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution [PodAffinityTerm]
PodAffinityTerm
  string: topologyKey
  [string]: matchLabelKeys mismatchLabelKeys namespaces
  labelSelector LabelSelector
  namespaceSelector LabelSelector
PodAntiAffinity
  preferredDuringSchedulingIgnoredDuringExecution [WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution [PodAffinityTerm]
PodCondition
  string: message reason status type
  number: observedGeneration
  any: lastProbeTime lastTransitionTime
PodDNSConfig
  [string]: nameservers searches
  options [PodDNSConfigOption]
PodDNSConfigOption
  string: name value
PodExtendedResourceClaimStatus
  string: resourceClaimName
  requestMappings [ContainerExtendedResourceRequest]
PodIP
  string: ip
PodOS
  string: name
PodReadinessGate
  string: conditionType
PodResourceClaim
  string: name resourceClaimName resourceClaimTemplateName
PodResourceClaimStatus
  string: name resourceClaimName
PodSchedulingGate
  string: name
PodSchedulingGroup
  string: podGroupName
PodSecurityContext
  string: fsGroupChangePolicy seLinuxChangePolicy supplementalGroupsPolicy
  number: fsGroup runAsGroup runAsUser
  bool: runAsNonRoot
  appArmorProfile AppArmorProfile
  seLinuxOptions SELinuxOptions
  seccompProfile SeccompProfile
  supplementalGroups [number]
  sysctls [Sysctl]
  windowsOptions WindowsSecurityContextOptions
PodSpec
  string: dnsPolicy hostname hostnameOverride nodeName preemptionPolicy
  string: priorityClassName restartPolicy runtimeClassName schedulerName serviceAccount
  string: serviceAccountName subdomain
  number: activeDeadlineSeconds priority terminationGracePeriodSeconds
  bool: automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID
  bool: hostUsers setHostnameAsFQDN shareProcessNamespace
  {any}: overhead
  affinity Affinity
  containers [Container by name] | merge name
  dnsConfig PodDNSConfig
  ephemeralContainers [EphemeralContainer by name] | merge name
  evictionResponders [EvictionResponder by name] | merge name
  hostAliases [HostAlias by ip] | merge ip
  imagePullSecrets [LocalObjectReference by name] | merge name
  initContainers [Container by name] | merge name
  nodeSelector {string} atomic
  os PodOS
  readinessGates [PodReadinessGate]
  resourceClaims [PodResourceClaim by name] | merge retainKeys name
  resources ResourceRequirements
  schedulingGates [PodSchedulingGate by name] | merge name
  schedulingGroup PodSchedulingGroup
  securityContext PodSecurityContext
  tolerations [Toleration]
  topologySpreadConstraints [TopologySpreadConstraint by topologyKey whenUnsatisfiable] | merge topologyKey
  volumes [Volume by name] | merge retainKeys name
PodStatus
  string: hostIP message nominatedNodeName phase podIP qosClass reason resize
  number: observedGeneration
  any: startTime
  {any}: allocatedResources
  conditions [PodCondition by type] | merge type
  containerStatuses [ContainerStatus]
  ephemeralContainerStatuses [ContainerStatus]
  extendedResourceClaimStatus PodExtendedResourceClaimStatus
  hostIPs [HostIP] | merge ip
  initContainerStatuses [ContainerStatus]
  nodeAllocatableResourceClaimStatuses [NodeAllocatableResourceClaimStatus by resourceClaimName] | merge resourceClaimName
  podIPs [PodIP by ip] | merge ip
  resourceClaimStatuses [PodResourceClaimStatus by name] | merge retainKeys name
  resources ResourceRequirements
  volumeHealth [PodVolumeHealth by name]
PodVolumeHealth
  string: name
  any: lastTransitionTime
  healthConditions [VolumeHealthCondition by status reason] | merge status
PreferredSchedulingTerm
  number: weight
  preference NodeSelectorTerm
Probe
  number: failureThreshold initialDelaySeconds periodSeconds successThreshold
  number: terminationGracePeriodSeconds timeoutSeconds
  exec ExecAction
  grpc GRPCAction
  httpGet HTTPGetAction
  tcpSocket TCPSocketAction
ResourceClaim
  string: name request
ResourceHealth
  string: health message resourceID
ResourceRequirements
  {any}: limits requests
  claims [ResourceClaim by name]
ResourceStatus
  string: name
  resources [ResourceHealth by resourceID]
SELinuxOptions
  string: level role type user
SeccompProfile
  string: localhostProfile type
SecretEnvSource
  string: name
  bool: optional
SecretKeySelector atomic
  string: key name
  bool: optional
SecurityContext
  string: procMount
  number: runAsGroup runAsUser
  bool: allowPrivilegeEscalation privileged readOnlyRootFilesystem runAsNonRoot
  appArmorProfile AppArmorProfile
  capabilities Capabilities
  seLinuxOptions SELinuxOptions
  seccompProfile SeccompProfile
  windowsOptions WindowsSecurityContextOptions
SleepAction
  number: seconds
Sysctl
  string: name value
TCPSocketAction
  string: host
  any: port
Toleration
  string: effect key operator value
  number: tolerationSeconds
TopologySpreadConstraint
  string: nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable
  number: maxSkew minDomains
  [string]: matchLabelKeys
  labelSelector LabelSelector
VolumeDevice
  string: devicePath name
VolumeHealthCondition
  string: message reason status
VolumeMount
  string: mountPath mountPropagation name recursiveReadOnly subPath subPathExpr
  bool: readOnly
  bindMountOptions [string set]
VolumeMountStatus
  string: mountPath name recursiveReadOnly
  bool: readOnly
  volumeStatus VolumeStatus
VolumeStatus
  image ImageVolumeStatus
WeightedPodAffinityTerm
  number: weight
  podAffinityTerm PodAffinityTerm
WindowsSecurityContextOptions
  string: gmsaCredentialSpec gmsaCredentialSpecName runAsUserName
  bool: hostProcess
"""
