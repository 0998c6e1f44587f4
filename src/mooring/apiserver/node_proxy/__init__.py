"""Requests that nodes answer.

connection         which container, where its node listens, and how to connect
streams            pods/log, pods/exec, pods/attach and pods/portforward
node_paths         nodes/proxy: paths of a node, such as /metrics
resource_metrics   metrics.k8s.io: what nodes and pods use, for `kubectl top`
"""
