"""Drivers for what machines have, each a small program on the SDK.

`mooring.drivers.catalogue` is the door: drivers by name, and whether they find something here.
"""
