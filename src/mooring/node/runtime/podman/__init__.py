"""Containers by podman, through its command line.

    # commandlines: what podman is asked, as values
    # answers: what it says, read
    # commands: how it is called, with bounds
    # images: pulled as a pod's policy wants it
    # sessions: commands that run in containers
    # runtime: the runtime itself

Podman is no daemon: containers outlive it and the agent. They are found again by their labels.
Every container is in the network of the machine, as processes are.
"""
