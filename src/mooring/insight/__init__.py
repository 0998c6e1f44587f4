"""Insight: objects in, answers out.

    snapshot     a cluster at one moment, as it is put to every question
    intake       from documents to the objects of a snapshot
    consistency  what is missing or contradictory among its objects
    completion   a snapshot with the pods, priorities and claims that a cluster would add
    fleet        the devices of many slices, and what they carry
    inquiry      an expression, put to the devices of a fleet
    explanation  which part of an expression said no, and from which values
    survey       all of that together, to be shown
    lint         what is odd about claims, templates, classes and taint rules
    holdings     who has which device, and what is free
    whatif       what changes would mean for pods and devices

    reads, parts, trees, atoms   expressions, taken apart
    objects, subjects, world     objects, and what selects devices in them
    *_rules, suggestions         the rules of lint
    workloads, daemons           pods that controllers would make
    priorities, identity         priorities by name, uids of what no server has seen
    concerns, wording, nearness  text

Pure: nothing here reads a file or a clock.
"""
