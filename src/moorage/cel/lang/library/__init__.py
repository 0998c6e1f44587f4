"""The standard library and cel-go's extension libraries.

operators       + - * / %, order, `in`, `size`
conversions     int(), string(), ..., and the parts of timestamps and durations
standard        the standard library
lists           lists, and lists taken as sets
strings         strings
format_clauses  templates of `format`
formatting      `format`
optionals       optional values
"""
