"""Requests that are passed on to nodes.

connection         which container, where its node listens, and how to connect
streams            pods/log, pods/exec, pods/attach and pods/portforward
node_paths         nodes/proxy: paths of a node, such as /metrics
resource_metrics   metrics.k8s.io: resource usage of nodes and pods, for `kubectl top`
"""
