"""Histories of a control plane: its real programs on a server in memory, in an order we choose.

turnstile  an event loop in which nothing goes on by itself
server     the server in memory: requests that wait for an answer, watches that wait for changes
pools      the devices of a cluster
things     other objects of a cluster
drivers    status reports of devices that must get ready
quotas     admission by quota
actions    what can happen to it
laws       what must hold whatever happens
embedded   a smaller campaign on the real server
history    a list of actions carried out, and shrunk when a law is broken
"""
