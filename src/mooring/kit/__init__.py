"""What programs that wait need, and nothing of Kubernetes.

clock       time as something that is passed in: the real one, and one that tests move by hand
simulation  time that jumps: an event loop in which nobody waits
backoff     how long to wait after so many failures
queue       keys to work on: each once, never two workers at one, again later if it failed
workers     those who work on the keys of a queue, and never stop because of one
metrics     counters, gauges and histograms, as Prometheus reads them
"""
