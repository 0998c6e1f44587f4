"""Insight: objects in, answers out.

    snapshot     a cluster at one moment, as it is put to every question
    fleet        the devices of many slices, and what they carry
    inquiry      an expression, put to the devices of a fleet
    explanation  which part of an expression said no, and from which values
    survey       all of that together, to be shown
    diagnosis    why claims get no devices on a node, and what would help
    lint         what is odd about claims, templates, classes and taint rules

    reads, parts, trees, atoms   expressions, taken apart
    objects, subjects, world     objects, and what selects devices in them
    *_rules, suggestions         the rules of lint
    wording, nearness            text

Pure: nothing here reads a file or a clock.
"""
