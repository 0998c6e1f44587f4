"""Expressions about devices, and what devices answer.

fleet         the devices of many slices, and what they carry
inquiry       an expression, put to the devices of a fleet
explanation   which part of an expression said no, and from which values
survey        all of that together, to be shown
reads, parts, trees, atoms   expressions, taken apart
"""
