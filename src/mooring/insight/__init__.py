"""Insight: objects in, answers out.

    snapshot     a cluster at one moment, as it is put to every question
    intake       documents as objects of a snapshot; consistency says what is odd about them
    completion   the pods, priorities and claims that a cluster would add (workloads, daemons)
    plan         where pods would go; placements has it in plain terms
    explain      why a pod gets no node (stoppages, noderefusals, podfixes, patience);
                 explanations has it as text and trees
    diagnosis    why claims get no devices on a node, what conflicts, what would help
    holdings     who has which device, and what can be had
    whatif       what changes would mean for pods and devices
    archive      snapshots as files (redaction, pseudonyms)
    topology     a picture of nodes, devices and owners

    fleet        the devices of many slices, and what they carry
    inquiry      an expression, put to the devices of a fleet
    explanation  which part of an expression said no, and from which values
    survey       all of that together, to be shown
    lint         what is odd about claims, classes, slices and pods: a package, one table of
                 rules a module

    reads, parts, trees, atoms   expressions, taken apart
    objects, subjects, podparts  objects, and what selects devices or describes pods in them
    wording, nearness, ordering  text

Pure: nothing here reads a file or a clock.
"""
