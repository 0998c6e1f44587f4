"""A cluster as it is put to every question.

snapshot      a cluster at one moment
intake        documents as objects of a snapshot; overlay puts manifests over a cluster
consistency   what is odd or missing among the objects
completion    what a cluster would add: pods (workloads, daemons), priorities, claims
identity, ownership   ids that are always the same, and who owns whom
"""
