"""The fields of rbac, coordination, node.k8s.io and events, and of reviews that are kept."""

from __future__ import annotations

RBAC = """\
AggregationRule
  clusterRoleSelectors [LabelSelector]
ClusterRole
  string: apiVersion kind
  aggregationRule AggregationRule
  metadata ObjectMeta
  rules [PolicyRule]
ClusterRoleBinding
  string: apiVersion kind
  metadata ObjectMeta
  roleRef RoleRef
  subjects [Subject]
PolicyRule
  [string]: apiGroups nonResourceURLs resourceNames resources verbs
Role
  string: apiVersion kind
  metadata ObjectMeta
  rules [PolicyRule]
RoleBinding
  string: apiVersion kind
  metadata ObjectMeta
  roleRef RoleRef
  subjects [Subject]
RoleRef atomic
  string: apiGroup kind name
Subject atomic
  string: apiGroup kind name namespace
"""

COORDINATION = """\
Lease
  string: apiVersion kind
  metadata ObjectMeta
  spec LeaseSpec
LeaseSpec
  string: holderIdentity preferredHolder strategy
  number: leaseDurationSeconds leaseTransitions
  any: acquireTime renewTime
"""

NODE = """\
Overhead
  {any}: podFixed
RuntimeClass
  string: apiVersion handler kind
  metadata ObjectMeta
  overhead Overhead
  scheduling Scheduling
Scheduling
  nodeSelector {string} atomic
  tolerations [Toleration]
"""

EVENTS = """\
Event
  string: action apiVersion kind note reason reportingController reportingInstance type
  number: deprecatedCount
  any: deprecatedFirstTimestamp deprecatedLastTimestamp eventTime
  deprecatedSource EventSource
  metadata ObjectMeta
  regarding ObjectReference
  related ObjectReference
  series EventSeries
EventSeries
  number: count
  any: lastObservedTime
"""

AUTHORIZATION = """\
FieldSelectorAttributes
  string: rawSelector
  requirements [FieldSelectorRequirement]
FieldSelectorRequirement
  string: key operator
  [string]: values
LabelSelectorAttributes
  string: rawSelector
  requirements [LabelSelectorRequirement]
LocalSubjectAccessReview
  string: apiVersion kind
  metadata ObjectMeta
  spec SubjectAccessReviewSpec
  status SubjectAccessReviewStatus
NonResourceAttributes
  string: path verb
ResourceAttributes
  string: group name namespace resource subresource verb version
  fieldSelector FieldSelectorAttributes
  labelSelector LabelSelectorAttributes
SelfSubjectAccessReview
  string: apiVersion kind
  metadata ObjectMeta
  spec SelfSubjectAccessReviewSpec
  status SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec
  nonResourceAttributes NonResourceAttributes
  resourceAttributes ResourceAttributes
SubjectAccessReview
  string: apiVersion kind
  metadata ObjectMeta
  spec SubjectAccessReviewSpec
  status SubjectAccessReviewStatus
SubjectAccessReviewSpec
  string: uid user
  [string]: groups
  extra {[string]}
  nonResourceAttributes NonResourceAttributes
  resourceAttributes ResourceAttributes
SubjectAccessReviewStatus
  string: evaluationError reason
  bool: allowed denied
"""

AUTHENTICATION = """\
TokenReview
  string: apiVersion kind
  metadata ObjectMeta
  spec TokenReviewSpec
  status TokenReviewStatus
TokenReviewSpec
  string: token
  [string]: audiences
TokenReviewStatus
  string: error
  bool: authenticated
  [string]: audiences
  user UserInfo
UserInfo
  string: uid username
  [string]: groups
  extra {[string]}
"""

AUTOSCALING = """\
Scale
  string: apiVersion kind
  metadata ObjectMeta
  spec ScaleSpec
  status ScaleStatus
ScaleSpec
  number: replicas
ScaleStatus
  string: selector
  number: replicas
"""
