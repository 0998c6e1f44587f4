"""A node under fire: real processes, devices that keep a journal, and the laws of it all.

programs  the processes: a cluster, an agent, drivers, each of which can be killed and started
driver    a driver that keeps a journal of its own, and kills whom a trap says at a step
things    classes, templates, claims and pods
laws      what must hold: whose devices are, by journals, checkpoints, CDI files and processes
history   a cluster, a node and its drivers through rounds of work and kills
"""
