"""Words for what kinds of several groups have in common."""

# ruff: noqa: E501 (a field and its words stand on one line)

from __future__ import annotations

META = """\
*
  apiVersion: Group and version of what the object is written in, such as resource.k8s.io/v1.
  kind: Name of what the object is, in CamelCase.
  metadata: Name, labels and whatever else every object has.
  spec: What is wanted.
  status: What is so, as the cluster reports it.
  conditions: Aspects of the state, each with a type of its own.
Condition
  lastTransitionTime: When the status changed last.
  message: The reason in words for people.
  observedGeneration: Generation of the object that the condition is about.
  reason: Why the status is what it is, in one CamelCase word.
  status: True, False or Unknown.
  type: Name of the aspect, in CamelCase or with a domain before it.
LabelSelector
  matchExpressions: Expressions that must all hold.
  matchLabels: Labels that must all be there with these values.
LabelSelectorRequirement
  key: The label.
  operator: In, NotIn, Exists or DoesNotExist.
  values: Values for In and NotIn; empty for the others.
ManagedFieldsEntry
  apiVersion: Version that the fields are named in.
  fieldsType: Form of fieldsV1; always FieldsV1.
  fieldsV1: The fields, as a tree of their names.
  manager: Who owns the fields.
  operation: Apply, or Update for any other write.
  subresource: Part of the object that was written; empty for the whole.
  time: When the manager last changed its fields.
NodeSelector
  nodeSelectorTerms: Terms of which one must hold.
NodeSelectorRequirement
  key: The label or field.
  operator: In, NotIn, Exists, DoesNotExist, Gt or Lt.
  values: Values to compare with; one whole number for Gt and Lt, none for Exists and DoesNotExist.
NodeSelectorTerm
  matchExpressions: Expressions over the node's labels; all must hold.
  matchFields: Expressions over the node's fields; all must hold.
ObjectMeta
  annotations: Texts by name that tools keep with the object; nothing can be selected by them.
  creationTimestamp: When the object was created; set by the server.
  deletionGracePeriodSeconds: Seconds that the object has left once its deletion was asked for.
  deletionTimestamp: When the object is to be gone; set by the server when its deletion is asked for.
  finalizers: Who still has work to do before the object may go; it stays as long as there are any.
  generateName: Beginning of a name that the server makes unique, if there is no name.
  generation: Number that goes up whenever what is wanted changes.
  labels: Short texts by name, by which objects are selected.
  managedFields: Who owns which fields; kept by the server.
  name: Name of the object; it cannot be changed.
  namespace: Namespace that the object is in; it cannot be changed.
  ownerReferences: Objects that this one belongs to; it is deleted when they all are gone.
  resourceVersion: Version of the object in the store; a write that names an old one is refused.
  selfLink: No longer set.
  uid: Identity of the object, never used twice; set by the server.
OwnerReference
  apiVersion: Group and version of the owner.
  blockOwnerDeletion: Whether the owner, if deleted in the foreground, waits for this object.
  controller: Whether the owner is the one that manages this object.
  kind: Kind of the owner.
  name: Name of the owner.
  uid: Identity of the owner.
"""
