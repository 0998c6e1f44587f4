"""The door of a node: logs, commands in containers, health, metrics and pods over HTTPS.

# contract    what the endpoint must know of the pods
# finding     which container is meant, and why there is none
# answering   a path and a query, and what is answered
# channels    a command whose streams go through one WebSocket
# sockets     WebSocket messages on a connection
# serving     TLS, who is let in, one exchange a connection
"""

from mooring.node.kubelet_server.handlers import NO_PODS, PodLister, RequestHandler
from mooring.node.kubelet_server.server import KubeletServer, TlsFiles, serving

__all__ = ["NO_PODS", "RequestHandler", "KubeletServer", "TlsFiles", "PodLister", "serving"]
