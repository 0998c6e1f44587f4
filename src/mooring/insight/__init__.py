"""Insight: objects in, answers out.

    snapshot     a cluster at one moment, as it is put to every question
    fleet        the devices of many slices, and what they carry
    inquiry      an expression, put to the devices of a fleet
    explanation  which part of an expression said no, and from which values
    survey       all of that together, to be shown
    lint         what is odd about claims, classes, slices and pods: a package, one table of
                 rules a module

    reads, parts, trees, atoms   expressions, taken apart
    objects, subjects, podparts  objects, and what selects devices or describes pods in them
    wording, nearness            text

Pure: nothing here reads a file or a clock.
"""
