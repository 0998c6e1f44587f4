"""A cluster at one moment, as every question gets it, and as a file.

snapshot      the objects of a cluster; manifests over a cluster; uids that are always the same
builder       documents as objects of a snapshot
unread        what could not be read, and what is unknown for that reason
written_objects  documents and what became of them; what operators create from custom workloads
item_reader   the items of dumps as objects that share their attributes
quotas       whether new pods and claims fit the quotas
consistency   missing and contradictory objects
workloads     the pods that controllers would create
stand_ins     pods for claims and templates that no pod uses
volume_claims  the volumes that new claims would get
completion    what a cluster would add: those pods, priorities, claims, volumes

archive       a snapshot in one file, checked when it is read
bundle        files of any tar or zip
redaction     a snapshot without what decides nothing
pseudonyms    a snapshot with other names, the same everywhere
"""
