"""The pods of a node: from admission to the last container, one worker for each pod.

pod_workers             a worker for each pod: the kubelet's pod workers
pod_worker              syncs one pod whenever something happens
pod_record              the node's state of a pod; crash backoff
pod_actions             which actions a pod needs next, and why it terminates (pure)
container_spec          the spec of a container as runtimes take it
pod_sync                carries out the actions: volumes, devices, containers, hooks
pod_context             what all workers share
admission               whether the node admits a pod (pure)
pod_status              the pod's status: phase and conditions (pure)
container_status        the statuses of its containers (pure)
container_environment   environment variables, and the objects they come from
service_environment     environment variables that say where services are (pure)
machine_fields          host names, addresses, ports and kinds of mounts: given, or refused
resizing                the resources that the node grants a pod, and in-place resize (pure)
volumes                 folders and mounts
volume_claims           the folders behind PersistentVolumeClaims
probes                  probes and lifecycle hooks
"""
