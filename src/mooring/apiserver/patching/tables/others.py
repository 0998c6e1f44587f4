"""The fields of rbac.authorization.k8s.io/v1, coordination.k8s.io/v1 and events.k8s.io/v1."""

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
