"""Insight: objects in, answers out. One package for each command or kind of question.

    snapshot     a cluster at one moment: from documents, checked, completed; and as an archive
    history      a cluster over time: recordings, the state at a revision, what happened when
    plan         where pods would go
    explain      why a pod gets no node, why claims get no devices, and what would help
    answer       the cause in one sentence, and the fixes that an expert would choose
    fit          how many more replicas fit, and what stops the next one
    devices      who uses which device, and what is available
    simulation   pods that arrive by a trace, in simulated time
    whatif       the effect of changes on pods and devices
    topology     a picture of nodes, devices and owners
    expressions  CEL expressions evaluated for devices: which part decided, and from which values
    lint         what is odd about claims, classes, slices and pods
    monitor      devices, pods and claims as metrics
    reports      findings as SARIF, JUnit XML and annotations of GitHub

    object_names KIND/NAME, and the objects that are named so
    messages     concerns about a snapshot; names and numbers in messages
    rows         answers as rows for tables of data, and CSV
    errors       the errors of this package

Pure: nothing here reads a file or a clock.
"""
