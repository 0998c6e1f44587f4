"""CEL expressions about devices, and their results.

published_devices  the devices of many slices, as expressions see them
evaluation         an expression evaluated for devices; reports for display
explanation        which part of an expression decided, and from which values
syntax             expressions taken apart, and written as text
"""
