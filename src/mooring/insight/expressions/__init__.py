"""CEL expressions about devices, and their results.

published_devices  the devices of many slices, as expressions see them
evaluation         an expression evaluated for devices; reports for display
repairs            what is wrong with a selector, and the selector that was meant
derived_repairs    derived attributes that fail on some device, and expressions that do not
comparisons        comparisons of attributes with literals
explanation        which part of an expression decided, and from which values
syntax             expressions taken apart, and written as text
"""
