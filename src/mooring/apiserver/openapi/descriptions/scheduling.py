"""Words for the fields of scheduling.k8s.io."""

from __future__ import annotations

SCHEDULING = """\
CompositeGangSchedulingPolicy
  minGroupCount: Groups that must find a place together.
GangSchedulingPolicy
  minCount: Pods that must find a place together.
PodGroupResourceClaim
  name: Name by which pods of the group use the claim.
  resourceClaimName: An existing claim. Exactly one of the two names is set.
  resourceClaimTemplateName: A template from which one claim is made for the group.
PodGroupResourceClaimStatus
  name: Name of the entry.
  resourceClaimName: The claim that was made; missing if none was needed.
PriorityClass
  description: When to use the class, for people.
  globalDefault: Whether pods that name no class get this one; at most one class says so.
  value: The priority; pods with a higher one come first.
TopologyConstraint
  key: Node label of which all pods must see the same value.
TypedLocalObjectReference
  apiGroup: Group of the object; empty for core.
  kind: Kind of the object.
  name: Name of the object.
WorkloadPodGroupTemplateReference
  podGroupTemplateName: Template in the workload.
WorkloadReference
  templateName: Template in the workload.
WorkloadSpec
  controllerRef: The object that controls the workload, for tools.
*
  all: All members are disrupted together.
  basic: Members are scheduled one by one.
  compositePodGroupTemplates: Composite groups that a controller makes.
  disruptionMode: Whether members are disrupted one by one or all together.
  gang: Members are scheduled together, or not at all.
  parentCompositePodGroupName: Composite group that it is part of.
  podGroupTemplateRef: Template that the group was made from.
  podGroupTemplates: Groups that a controller makes.
  preemptionPolicy: PreemptLowerPriority, or Never if nobody is to be pushed off a node for it.
  priority: Priority, set from the priority class.
  priorityClassName: Class that gives the priority.
  resourceClaimStatuses: Claims that were made for the entries.
  resourceClaims: Claims that are used.
  schedulingConstraints: Where members must be in relation to each other.
  name: Name by which it is known.
  schedulingPolicy: How members are scheduled.
  single: Members are disrupted one by one.
  topology: Constraints on the topology.
  workload: The template, in a workload.
  workloadName: Name of the workload.
  workloadRef: Workload and template that it was made from.
"""
