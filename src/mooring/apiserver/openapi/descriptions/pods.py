"""Words for what pods, containers and nodes have besides devices."""

from __future__ import annotations

PODS = """\
PodSpec
  automountServiceAccountToken: Whether containers find a token; yes if it is missing.
  dnsConfig: More settings for looking up names.
  dnsPolicy: Where names are looked up: in the cluster first, or as the node does.
  enableServiceLinks: Whether services are told to containers in environment variables.
  ephemeralContainers: Containers that were added to the running pod to look into it.
  evictionResponders: Who is asked before the pod is evicted.
  hostAliases: Names and addresses that are added to the pod's file of hosts.
  hostIPC hostPID: Whether the pod shares this with the node.
  hostUsers: Whether users in the pod are those of the node; false gives it users of its own.
  hostname hostnameOverride: What the pod calls itself; the pod's name if it is missing.
  imagePullSecrets: Secrets with which images are fetched.
  os: The operating system that the containers need.
  overhead: What running the pod takes besides its containers; set from its runtime class.
  preemptionPolicy: Whether pods of lower priority may have to leave for this one.
  priority: Who goes first, as a number; set from the priority class.
  priorityClassName: The class that says who goes first.
  readinessGates: Conditions that must be true besides those of the containers.
  resources: What all containers together need and may take.
  runtimeClassName: What runs the containers, if it is not the usual.
  schedulingGroup: The group of pods that are placed together.
  securityContext: Users, groups and rights of all containers.
  serviceAccount: The older name of serviceAccountName.
  setHostnameAsFQDN: Whether the pod's host name has its domain, too.
  shareProcessNamespace: Whether the containers see each other's processes.
  subdomain: The domain of the pod's host name.
  tolerations: Taints of nodes that the pod does not mind.
PodStatus
  allocatedResources: Amounts that the node has set aside for the pod.
  conditions: What is so of the pod, one entry for each question.
  containerStatuses: How each container is doing.
  hostIP: Address of the node.
  hostIPs: Addresses of the node.
  initContainerStatuses: How each init container is doing.
  message: Why the pod is in its state, for people.
  observedGeneration: The generation of the pod that this status is about.
  qosClass: Guaranteed, Burstable or BestEffort, which follows from requests and limits.
  resize: How far a change of resources is.
  resourceClaimStatuses: The claims that were made for the pod's entries.
  resources: What all containers together have been given.
  startTime: When the node took on the pod.
Container
  lifecycle: What is done after the start and before the end.
  livenessProbe: How the node sees that the container must be restarted.
  readinessProbe: How the node sees that the container can be used.
  resizePolicy: Which changes of resources need a restart.
  restartPolicyRules: Exit statuses after which the container is started again.
  securityContext: User, group and rights of the container.
  startupProbe: How the node sees that the container is up; other probes wait for it.
  stdin stdinOnce tty: Whether the container has a terminal or input to attach to.
  terminationMessagePath: File in which the program says why it ends.
  terminationMessagePolicy: Where that is read from, if not from the file.
  volumeDevices: Block devices that the container sees.
  volumeMounts: Volumes of the pod that the container sees, and where.
ContainerStatus
  allocatedResources: Amounts that the node has set aside for the container.
  allocatedResourcesStatus: Devices of the container, and whether they are well.
  containerID: What the runtime calls the container.
  image imageID: The image that runs.
  lastState: How the container ended the last time.
  name: The container's name.
  ready: Whether the container can be used.
  resources: What the container has been given.
  restartCount: How often the container was started again.
  started: Whether the container is up.
  state: Waiting, running or terminated.
  user: The user that the program runs as.
  volumeMounts: Volumes that are mounted.
ContainerPort
  containerPort: Port in the pod.
  hostIP: Address of the node that the port is bound to.
  hostPort: Port of the node; most pods need none.
  name: A name for the port.
  protocol: TCP, UDP or SCTP.
ContainerExtendedResourceRequest
  containerName: The container that asks for the resource.
  requestName: The request of the special claim that stands for it.
  resourceName: The resource that the container asks for.
PodExtendedResourceClaimStatus
  requestMappings: Which request stands for which resource of which container.
  resourceClaimName: The claim that was made for the pod's extended resources.
PodCondition
  lastProbeTime: When it was looked at last.
  observedGeneration: The generation of the pod that this is about.
  type: The question, such as PodScheduled or Ready.
PodSchedulingGate
  name: Name of the gate; whoever set it takes it away.
PodSchedulingGroup
  podGroupName: The PodGroup, in the pod's namespace.
EnvVar
  name: Name of the variable.
  value: Its value.
  valueFrom: Where its value is taken from.
VolumeMount
  mountPath: Where the container sees the volume.
  mountPropagation: Whether mounts made later are seen, too.
  name: Name of the volume.
  readOnly recursiveReadOnly: Whether the container can only read.
  subPath subPathExpr: Folder of the volume that is seen, if not all of it.
Volume
  configMap secret: Files made of this object.
  csi: Storage of a driver.
  downwardAPI: Files with what is known of the pod.
  emptyDir: A folder that lives as long as the pod.
  ephemeral: A claim for storage that lives as long as the pod.
  hostPath: A file or folder of the node.
  image: The content of an image.
  name: Name of the volume, unique in its pod.
  persistentVolumeClaim: Storage of a claim that is there already.
  projected: Files from several sources together.
Probe
  exec grpc httpGet tcpSocket: What is tried.
  failureThreshold: How many tries in a row must fail.
  initialDelaySeconds: Seconds before the first try.
  periodSeconds: Seconds between tries.
  successThreshold: How many tries in a row must succeed.
  terminationGracePeriodSeconds: Seconds that the container gets to end when the probe fails.
  timeoutSeconds: Seconds after which a try has failed.
ResourceHealth
  health: Healthy, Unhealthy or Unknown.
  message: What is wrong, for people.
  resourceID: The device.
Toleration
  effect: The effect that is tolerated; all if it is missing.
  key: Key of the taint; with Exists and without a key all are meant.
  operator: Equal, Exists, Lt or Gt.
  tolerationSeconds: How long a taint of NoExecute is tolerated; for ever if it is missing.
  value: Value of the taint.
Taint
  effect: NoSchedule, PreferNoSchedule or NoExecute.
  key: Key of the taint.
  timeAdded: When it was added.
  value: Value that belongs to the key.
TopologySpreadConstraint
  matchLabelKeys: Labels of this pod that other pods must have, too, to be counted.
  maxSkew: By how many pods places may differ.
  minDomains: How many places there should be at least.
  nodeAffinityPolicy nodeTaintsPolicy: Whether nodes that the pod cannot use are counted.
  topologyKey: Label of nodes by whose value they are one place.
  whenUnsatisfiable: DoNotSchedule, or ScheduleAnyway where it is only a wish.
PodAffinityTerm
  matchLabelKeys mismatchLabelKeys: Labels of this pod that are added to the selector.
  namespaces: Namespaces of the other pods; this pod's own if none are named.
  topologyKey: Label of nodes by whose value they are one place.
SecurityContext
  allowPrivilegeEscalation: Whether programs can get more rights than they began with.
  capabilities: Rights of the kernel that are given or taken.
  privileged: Whether the container may do whatever the node may.
  readOnlyRootFilesystem: Whether the image's files cannot be changed.
  runAsGroup runAsUser: Number that the program runs as.
  runAsNonRoot: Whether the program must not run as root.
NodeSpec
  podCIDR podCIDRs: Addresses that pods on the node get.
  providerID: What the provider of the machine calls it.
  taints: What keeps pods away that do not tolerate it.
NodeStatus
  conditions: What is so of the node, one entry for each question.
  daemonEndpoints: Ports of the node agent.
  features: What the runtime can do.
  images: Images that the node has.
  phase: No longer used.
  runtimeHandlers: What can run containers here.
  volumesAttached volumesInUse: Volumes that the node has, or needs.
NodeCondition
  lastHeartbeatTime: When it was reported last.
  type: The question, such as Ready or MemoryPressure.
NodeSystemInfo
  architecture: Architecture of the processors.
  bootID machineID systemUUID: What tells this machine, or this start of it, from others.
  containerRuntimeVersion kubeProxyVersion kubeletVersion: Version of this program.
  kernelVersion: Version of the kernel.
  operatingSystem osImage: The operating system.
NamespaceSpec
  finalizers: What must let go before the namespace is gone.
ServiceAccount
  automountServiceAccountToken: Whether pods of the account find its token.
  imagePullSecrets: Secrets with which images are fetched.
  secrets: Secrets that belong to the account.
Event
  action: What was done.
  count: How often it happened.
  eventTime firstTimestamp: When it happened first.
  involvedObject: What the event is about.
  lastTimestamp: When it happened last.
  message: What happened, for people.
  reason: Why, in one word.
  related: Another object that has to do with it.
  reportingComponent reportingInstance: Who tells of it.
  type: Normal or Warning.
EventSource
  component: The program that tells of it.
  host: The node that it runs on.
EventSeries
  count: How often it happened.
  lastObservedTime: When it happened last.
ObjectReference
  apiVersion kind: What the object is.
  fieldPath: The part of the object that is meant.
  name namespace: Where the object is.
  resourceVersion: The version of the object that is meant.
  uid: The very object, and not a later one of its name.
*
  lastTransitionTime: When the answer changed last.
  message: Why, for people.
  observedGeneration: The generation of the object that this status is about.
  reason: Why, in one word.
  revisionHistoryLimit: How many old revisions are kept.
  minReadySeconds: Seconds that a pod must have been ready to count as available.
  updateStrategy: How old pods are replaced by new ones.
  readyReplicas: Pods that are ready.
  availableReplicas: Pods that have been ready long enough.
  updatedReplicas: Pods of the newest template.
  unavailableReplicas: Pods that are missing or not ready long enough.
"""
