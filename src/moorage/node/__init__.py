"""The node agent, Moorage's kubelet: it runs the pods that are bound to this machine.

    agent            the node agent: registers the node, reports its status, and runs its pods
    node_status      the Node object and the machine behind it
    resource_usage   what the node and its containers use, when somebody asks
    contract         the contract of device managers
    pods             pod workers, and everything about one pod
    dra              ResourceClaims: DRA drivers, claims, health, PodResources
    device_plugins   device plugins beside DRA
    runtime          container runtimes: processes, podman, simulated
    kubelet_server   logs, exec, metrics and pods over HTTPS
    service_proxy    services with a loopback address, forwarded to their pods
    host_folders     the kubelet's folder and CDI's, for nodes that have them elsewhere
    inotify          changes in folders
    errors           what can go wrong

Nothing here knows how to reach the API server, except through a client.
"""
