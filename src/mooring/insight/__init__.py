"""Insight: objects in, answers out.

    fleet        devices of many slices, and what they carry
    survey       what an expression gives for each device of a fleet
    explanation  which part of an expression said no, and why
    lint         what is odd about claims, templates, classes and taint rules

Pure: nothing here reads a file or a clock.
"""
