"""CEL expressions about devices, and their results.

published_devices  the devices of many slices, as expressions see them
evaluation         an expression evaluated for devices; reports for display
explanation        which part of an expression decided, and from which values
syntax             expressions taken apart, and written as text

repairs            what is wrong with selectors, and the selectors that were meant
candidates         the devices that selectors are put to, in rows that look alike
mistake            mistakes, and options for what was meant
questions          the questions of an expression, put to devices
terms              the terms of selectors, and which of them are mistakes
answers            comparisons that no device fulfils
mistyped           comparisons with literals of another type
comparisons        comparisons with literals, whichever way they are written
contradictions     terms that nothing fulfils together
fields             fields that no device has
paths              fields as they are written, and as they are meant
values             values and literals: types, units, texts that look alike
respelling         expressions that do not compile
miswritten         expressions that parse but do not check
derived_repairs    derived attributes that fail on some device, and expressions that do not
derived            derived attributes without a value on some devices
"""
