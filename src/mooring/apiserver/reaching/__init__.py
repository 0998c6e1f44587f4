"""What the nodes of pods answer, and the server passes on: logs, and commands in containers.

# contract    how the server shows nodes who it is
# places      which container is meant, and where its node listens
# dialling    connections to nodes
# logs        pods/log
# tunnels     pods/exec and pods/attach: after the upgrade, bytes as they come
# answering   the door
"""
