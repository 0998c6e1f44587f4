"""resource.k8s.io: v1 is the version in which most objects are stored.

devices     devices and slices of v1
v1          claims, classes and taint rules; re-exports `devices`
v1beta1     the structs that differ in v1beta1
v1alpha3    ResourcePoolStatusRequest
versions    kinds in all versions, and conversion between them
"""
