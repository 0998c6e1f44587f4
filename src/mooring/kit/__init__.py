"""What programs that wait or listen need, and nothing of Kubernetes.

clock       time as something that is passed in: the real one, and one that tests move by hand
simulation  time that jumps: an event loop in which nobody waits
backoff     how long to wait after so many failures
queue       keys to work on: each once, never two workers at one, again later if it failed
connections who is let in at a port, and what is expected of them before they speak
heads       the first line and the headers of HTTP messages
websocket   frames of WebSocket connections
workers     those who work on the keys of a queue, and never stop because of one
go_platform Go's names for operating systems and processors
beneath     paths below a folder, of names from outside: no link is followed
atomic_file files that are whole or absent
go_quote    texts as Go's %q prints them
lru         a cache that evicts the least recently used key first
extras      packages that may be missing, and which extra of the distribution brings them
metrics     counters, gauges and histograms, as Prometheus reads them
"""
