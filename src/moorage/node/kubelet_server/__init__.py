"""The kubelet server: logs, exec, attach and port-forward, health, metrics and pods over HTTPS.

server         TLS, authentication, one exchange per connection
handlers       a path and a query, and the response
streaming      exec and attach, with all streams in one WebSocket
port_forward   connections to ports of a pod, as SPDY streams
"""

from moorage.node.kubelet_server.handlers import PodLister, RequestHandler
from moorage.node.kubelet_server.server import KubeletServer, TlsFiles, serving

__all__ = ["KubeletServer", "PodLister", "RequestHandler", "TlsFiles", "serving"]
