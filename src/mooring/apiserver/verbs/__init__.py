"""The verbs on resources.

resource_request    a request for a resource, and its decoded body
dispatch            which handler performs a verb, and its response
list                pages of objects at one revision
watch               events of changes
selectors           label and field selectors
write               create and update
patch               patches and server-side apply
delete              deletion with finalizers, grace periods and propagation
subresources        binding, eviction, finalize, token, scale
managed_fields      managedFields of stored objects
"""
