"""Validation of Pods, one module for each part of a pod.

strategy            PodStrategy: preparation, dropped fields, validation
subresources        the strategies of ephemeralcontainers and resize
defaults            default values
spec                the pod as a whole: claims, placement, tolerations
containers          containers, and the volumes that they mount
container_fields    environment, probes, lifecycle hooks, restart and resize policies
volumes             volumes, claim templates; volume_sources has projected and network volumes
resources           requests and limits of containers and of the pod, QoS classes
affinity            affinity, topology spread
tolerations         tolerations
annotations         annotations that mean something to a pod
warnings            warnings about pods that are accepted; volume_warnings has those of volumes
networking          ports, host namespaces, host names, DNS
security_context    security contexts, of Linux and of Windows
status              the status; status_fields has its addresses, users and states
update              what an update may change
layout              pod specs as Kubernetes prints them in errors
field_rules         what many of these modules share
"""
