"""Where objects come from: files, archives, hardware profiles and running clusters.

given_cluster    a cluster and manifests over it, as commands and the library get them
cluster_sources  the sources, and how they pass their objects on
inputs           files, directories, archives and standard input, with bounds
large_files      large JSON files, whose text stays in the file
recordings       clusters over time: a moment of one, or the whole
live_source      a running cluster
changes          changes of a cluster, written as text
errors           the tree of errors
scheduler_file   the file with a KubeSchedulerConfiguration
"""
