"""Admission: everything between a decoded body and the stored object.

chain               the order of all steps, and the plugins
server_defaults     values that the server itself sets
write_access        whether a user may write this content
certificates        who may approve and sign certificates
node_restriction    NodeRestriction: what nodes may write
service_account     ServiceAccount and DefaultTolerationSeconds, and default accounts
classes             Priority, RuntimeClass, DefaultStorageClass, StorageObjectInUseProtection,
                    PersistentVolumeClaimResize
limit_ranger        LimitRanger: default and bounded resources
service_allocator   addresses and node ports of services
pod_security        PodSecurity: levels that namespaces ask of their pods; existing_pods has the
                    warnings when a level becomes stricter
pod_resize          PodResizeValidator: the node of a pod that is resized
quota_controller    ResourceQuota: charging writes, and recounting quotas
quota_charges       the queue of charges in a namespace
cache               objects that plugins read
"""
