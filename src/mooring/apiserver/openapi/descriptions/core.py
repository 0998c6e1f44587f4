"""Words for the fields of core, apps, batch, coordination and rbac that are met most."""

from __future__ import annotations

CORE = """\
Container
  args: Arguments of the program.
  command: The program; without it the image says which.
  env: Environment variables.
  envFrom: Where more environment variables come from.
  image: Image that the container is made from.
  imagePullPolicy: Always, Never or IfNotPresent.
  name: Name of the container, unique in its pod.
  ports: Ports that the container listens on.
  resources: What the container needs and may take; the claims that it uses among it.
  restartPolicy: Always for an init container that runs as long as the pod.
  workingDir: Folder that the program starts in.
ResourceClaim
  name: Name of a claim in the pod's resourceClaims.
  request: Request of the claim that the container uses; all if it is empty.
ResourceRequirements
  claims: Claims of the pod that the container uses.
  limits: Amounts that it may take at most.
  requests: Amounts that it needs at least.
PodResourceClaim
  name: Name by which containers use the claim.
  resourceClaimName: An existing claim in the pod's namespace. Exactly one of the two names is set.
  resourceClaimTemplateName: A template from which a claim is made for the pod.
PodResourceClaimStatus
  name: Name of the entry in the pod's resourceClaims.
  resourceClaimName: The claim that was made; missing if none was needed.
PodSpec
  activeDeadlineSeconds: Seconds after which the pod is stopped.
  affinity: Nodes and pods that the pod must or should be near, or apart from.
  containers: The containers; at least one.
  initContainers: Containers that run before the others, one after the other.
  hostNetwork: Whether the pod uses the node's network.
  nodeName: Node that the pod is on; set by the scheduler.
  nodeSelector: Labels that the node must have.
  resourceClaims: Claims that must have their devices before the pod starts.
  restartPolicy: Always, OnFailure or Never.
  schedulerName: Scheduler that finds a node for the pod.
  schedulingGates: What must happen before the pod is scheduled.
  serviceAccountName: Identity of the pod's programs.
  terminationGracePeriodSeconds: Seconds that the containers get to end.
  topologySpreadConstraints: How evenly pods like this one are spread.
  volumes: Storage that containers can mount.
PodStatus
  extendedResourceClaimStatus: The claim that stands for the pod's extended resources.
  nominatedNodeName: Node on which others are preempted for this pod.
  phase: Pending, Running, Succeeded, Failed or Unknown.
  podIP: First address of the pod.
  podIPs: Addresses of the pod.
  reason: Why the pod is in its state, in one word.
NodeSpec
  unschedulable: Whether new pods stay away.
NodeStatus
  addresses: Names and addresses of the node.
  allocatable: Amounts that pods can get.
  capacity: Amounts that the node has.
  declaredFeatures: Features that the node supports.
  nodeInfo: Software of the node.
NamespaceStatus
  phase: Active or Terminating.
ResourceQuotaSpec
  hard: How much there may be, by name; device classes as CLASS.deviceclass.resource.k8s.io/devices.
  scopeSelector: Objects that are counted.
  scopes: Objects that are counted, in the older form.
ResourceQuotaStatus
  hard: How much there may be, as far as it is enforced.
  used: How much there is.
ConfigMap
  binaryData: Bytes by name, in base64.
  data: Texts by name.
  immutable: Whether the data can no longer be changed.
Secret
  data: Bytes by name, in base64.
  immutable: Whether the data can no longer be changed.
  stringData: Texts by name, which are stored in data; never read back.
  type: What the data is for.
DeploymentSpec
  replicas: Pods that are wanted; 1 if it is missing.
  selector: Labels of the pods; they must be those of the template.
  strategy: How old pods are replaced by new ones.
  template: The pods that are made.
JobSpec
  backoffLimit: How often pods may fail before the job has failed.
  completions: Pods that must succeed.
  parallelism: Pods that run at a time.
  suspend: Whether no pods are to run for now.
  template: The pods that are made.
LeaseSpec
  holderIdentity: Who has the lease.
  leaseDurationSeconds: Seconds after which others may take it, counted from renewTime.
  renewTime: When the holder renewed it last.
PolicyRule
  apiGroups: Groups of the resources; "*" for all.
  nonResourceURLs: Paths that are no resources; "*" at the end for all below.
  resourceNames: Names of the objects; all if there are none.
  resources: Resources, parts as RESOURCE/PART; "*" for all.
  verbs: What may be done; "*" for everything.
RuntimeClass
  handler: Runtime of the node that runs the pods; nodes are configured with its name.
  overhead: What a pod takes besides its containers.
  scheduling: Nodes that have the runtime.
"""
