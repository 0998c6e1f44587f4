"""The rules of allocation, one module each.

Static rules say for a device and a request, once and for all: yes, no, or a fault. Stateful
rules (see `mooring.allocator.rules.base`) say it in view of what was picked before.
"""
