"""The fields of scheduling.k8s.io.

v1alpha3 is as v1beta1 but for the structs that stand here; so is v1alpha2, which Kubernetes
no longer has (see mooring.api.scheduling.v1alpha2).
"""

from __future__ import annotations

V1 = """\
PriorityClass
  string: apiVersion description kind preemptionPolicy
  number: value
  bool: globalDefault
  metadata ObjectMeta
"""

V1BETA1 = """\
AllCompositeDisruptionMode free
AllDisruptionMode free
BasicSchedulingPolicy free
CompositeBasicSchedulingPolicy free
CompositeDisruptionMode
  all AllCompositeDisruptionMode
  single SingleCompositeDisruptionMode
CompositeGangSchedulingPolicy
  number: minGroupCount
CompositePodGroupSchedulingConstraints
  topology [TopologyConstraint]
CompositePodGroupSchedulingPolicy
  basic CompositeBasicSchedulingPolicy
  gang CompositeGangSchedulingPolicy
CompositePodGroupTemplate
  string: name preemptionPolicy priorityClassName
  number: priority
  compositePodGroupTemplates [CompositePodGroupTemplate by name]
  disruptionMode CompositeDisruptionMode
  podGroupTemplates [PodGroupTemplate by name]
  schedulingConstraints CompositePodGroupSchedulingConstraints
  schedulingPolicy CompositePodGroupSchedulingPolicy
DisruptionMode
  all AllDisruptionMode
  single SingleDisruptionMode
GangSchedulingPolicy
  number: minCount
PodGroup
  string: apiVersion kind
  metadata ObjectMeta
  spec PodGroupSpec
  status PodGroupStatus
PodGroupResourceClaim
  string: name resourceClaimName resourceClaimTemplateName
PodGroupResourceClaimStatus
  string: name resourceClaimName
PodGroupSchedulingConstraints
  topology [TopologyConstraint]
PodGroupSchedulingPolicy
  basic BasicSchedulingPolicy
  gang GangSchedulingPolicy
PodGroupSpec
  string: parentCompositePodGroupName preemptionPolicy priorityClassName
  number: priority
  disruptionMode DisruptionMode
  resourceClaims [PodGroupResourceClaim by name] | merge retainKeys name
  schedulingConstraints PodGroupSchedulingConstraints
  schedulingPolicy PodGroupSchedulingPolicy
  workloadRef WorkloadReference
PodGroupStatus
  conditions [Condition by type] | merge type
  resourceClaimStatuses [PodGroupResourceClaimStatus by name] | merge retainKeys name
PodGroupTemplate
  string: name preemptionPolicy priorityClassName
  number: priority
  disruptionMode DisruptionMode
  resourceClaims [PodGroupResourceClaim by name] | merge retainKeys name
  schedulingConstraints PodGroupSchedulingConstraints
  schedulingPolicy PodGroupSchedulingPolicy
SingleCompositeDisruptionMode free
SingleDisruptionMode free
TopologyConstraint
  string: key
TypedLocalObjectReference
  string: apiGroup kind name
Workload
  string: apiVersion kind
  metadata ObjectMeta
  spec WorkloadSpec
WorkloadReference
  string: templateName workloadName
WorkloadSpec
  compositePodGroupTemplates [CompositePodGroupTemplate by name]
  controllerRef TypedLocalObjectReference
  podGroupTemplates [PodGroupTemplate by name]
"""

V1ALPHA3 = """\
CompositePodGroup
  string: apiVersion kind
  metadata ObjectMeta
  spec CompositePodGroupSpec
  status CompositePodGroupStatus
CompositePodGroupSpec
  string: parentCompositePodGroupName preemptionPolicy priorityClassName
  number: priority
  disruptionMode CompositeDisruptionMode
  schedulingConstraints CompositePodGroupSchedulingConstraints
  schedulingPolicy CompositePodGroupSchedulingPolicy
  workloadRef WorkloadReference
CompositePodGroupStatus
  conditions [Condition by type] | merge type
WorkloadPodGroupAllDisruptionMode free
WorkloadPodGroupBasicSchedulingPolicy free
WorkloadPodGroupDisruptionMode
  all WorkloadPodGroupAllDisruptionMode
  single WorkloadPodGroupSingleDisruptionMode
WorkloadPodGroupGangSchedulingPolicy
  number: minCount
WorkloadPodGroupResourceClaim
  string: name resourceClaimName resourceClaimTemplateName
WorkloadPodGroupSchedulingConstraints
  topology [TopologyConstraint]
WorkloadPodGroupSchedulingPolicy
  basic WorkloadPodGroupBasicSchedulingPolicy
  gang WorkloadPodGroupGangSchedulingPolicy
WorkloadPodGroupSingleDisruptionMode free
"""

V1ALPHA2 = """\
PodGroupSpec
  string: disruptionMode parentCompositePodGroupName preemptionPolicy priorityClassName
  number: priority
  podGroupTemplateRef PodGroupTemplateReference
  resourceClaims [PodGroupResourceClaim by name] | merge retainKeys name
  schedulingConstraints PodGroupSchedulingConstraints
  schedulingPolicy PodGroupSchedulingPolicy
PodGroupTemplate
  string: disruptionMode name preemptionPolicy priorityClassName
  number: priority
  resourceClaims [PodGroupResourceClaim by name] | merge retainKeys name
  schedulingConstraints PodGroupSchedulingConstraints
  schedulingPolicy PodGroupSchedulingPolicy
PodGroupTemplateReference
  workload WorkloadPodGroupTemplateReference
WorkloadPodGroupTemplateReference
  string: podGroupTemplateName workloadName
"""
