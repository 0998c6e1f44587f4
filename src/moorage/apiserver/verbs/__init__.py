"""The verbs on resources.

resource_request    a request for a resource, and its decoded body
dispatch            which handler performs a verb, and its response
list                pages of objects at one revision
watch               events of changes
selectors           label and field selectors
field_labels        fields by which objects of each kind are selected
write               create and update
write_options       options in the query of a write
mutation            what policies and webhooks change before
patch               patches and server-side apply
usual_apply         server-side apply that only adds
delete              deletion with finalizers, grace periods and propagation
subresources        binding, eviction, finalize, token, scale
eviction            evictions within disruption budgets
managed_fields      managedFields of stored objects
"""
