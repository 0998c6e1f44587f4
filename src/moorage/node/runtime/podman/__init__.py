"""Containers by podman, through its command line.

    command_line       podman's command lines, and the output of podman, as values
    security_options   security contexts as options of podman
    client             podman as a subprocess: bounded calls, image pulls, exec sessions
    resources          other limits for running containers, and what they have used
    subpath_mounts     which files a container has mounted for its subPaths
    runtime            the runtime itself

Podman has no daemon: containers outlive it and the agent, and are found again by their labels.
Every container uses the machine's network, as processes do.
"""
