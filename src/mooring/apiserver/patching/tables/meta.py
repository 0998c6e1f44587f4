"""The fields of meta/v1."""

from __future__ import annotations

META = """\
Condition
  string: message reason status type
  number: observedGeneration
  any: lastTransitionTime
LabelSelector atomic
  {string}: matchLabels
  matchExpressions [LabelSelectorRequirement]
LabelSelectorRequirement
  string: key operator
  [string]: values
ManagedFieldsEntry
  string: apiVersion fieldsType manager operation subresource
  any: time
  fieldsV1 json
ObjectMeta
  string: generateName name namespace resourceVersion selfLink uid
  number: deletionGracePeriodSeconds generation
  any: creationTimestamp deletionTimestamp
  {string}: annotations labels
  finalizers [string set] | merge
  managedFields [ManagedFieldsEntry]
  ownerReferences [OwnerReference by uid] | merge uid
OwnerReference atomic
  string: apiVersion kind name uid
  bool: blockOwnerDeletion controller
"""
