"""Insight: objects in, answers out.

    clusters     a cluster at one moment, from documents, checked and completed
    archives     snapshots as files
    planning     where pods would go
    pending      why a pod gets no node
    diagnosis    why claims get no devices on a node, what conflicts, what would help
    fit          how many more replicas fit, and what stops the next one
    holdings     who has which device, and what can be had
    whatif       what changes would mean for pods and devices
    topology     a picture of nodes, devices and owners
    expressions  an expression, put to devices: which part of it said no, and from which values
    lint         what is odd about claims, classes, slices and pods: one table of rules a module

    concerns                     what is to be known before an answer is believed
    objects                      documents as objects, each with its text
    wording, nearness, ordering  text

Pure: nothing here reads a file or a clock.
"""
