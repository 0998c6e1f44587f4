"""Where objects come from: files, archives, hardware profiles and running clusters.

given_cluster    the cluster and the manifests that a command or the library reads
cluster_sources  the sources, and the receivers of their objects
inputs           files, directories, archives and standard input, bounded
collection       the slices and other objects of sources, with their source text
validation       validation of whole sources
linting          what is linted, and what was found
large_files      large JSON files, whose text stays in the file
recordings       recordings of clusters, at one moment or as a whole
live_source      a running cluster
changes          changes to a cluster, written as text
errors           the tree of errors
scheduler_file   the file with a KubeSchedulerConfiguration
"""
