"""Insight: objects in, answers out.

    snapshot     a cluster at one moment, as it is put to every question
    intake       from documents to the objects of a snapshot
    consistency  what is missing or contradictory among its objects
    overlay      manifests over a cluster
    archive      a snapshot as one file
    completion   a snapshot with the pods, priorities and claims that a cluster would add
    fleet        the devices of many slices, and what they carry
    inquiry      an expression, put to the devices of a fleet
    explanation  which part of an expression said no, and from which values
    survey       all of that together, to be shown
    lint         what is odd about claims, templates, classes and taint rules

    reads, parts, trees, atoms        expressions, taken apart
    objects, subjects, world          objects, and what selects devices in them
    *_rules, suggestions              the rules of lint
    workloads, ownership, daemons     pods that controllers have and would make
    priorities, identity              priorities by name, uids of what no server has seen
    redaction, pseudonyms, tarstream  what an archive leaves out, and its outer form
    concerns, wording, nearness       text

Pure: nothing here reads a file or a clock.
"""
