"""The page at /ui/: a fleet of devices as columns, its changes, and answers to questions.

    source ─► feed ─► view: rights ─► scene ─► fleet ─┬─ whole ──► GET /ui/fleet
                                        │             └─ delta ──► GET /ui/events
                                        └─► moment ─► questions

columns        columns of numbers, compressed for JSON; names as numbers; rows that keep theirs
fleet          a fleet as tables of columns, and the changes from one to the next
scene          the objects of a cluster, and the fleet that follows their changes
pool_usages    the device usage of all pools, kept while objects change
device_rows    nodes, devices and holdings as rows; partitions of devices
partitions     devices that are parts of others
owner_rows     claims and pods as rows
pending        waiting pods by cause, and what they want; causes finds them out for a plan
causes         the causes of all waiting pods
rights         what a viewer may see

feed           the objects of a source, and what follows their changes
cluster_feed   a cluster as a source
view           what viewers with the same rights see, and the stream of changes
past           earlier moments
store_past     those that a store still keeps from before
questions      explain, what-if, CEL and details: pure answers about a moment
asking         questions in worker threads, with turns and deadlines

page           requests and their answers
login          links that work once, and cookies
messages       headers, checks of origin, bodies
errors         errors as answers
static_files   the files of the client, which are in `static`
door           the page as an extension of the API server
local_server   the page alone, on loopback
single_file    the page as one file; bundle puts its modules together
bundle         modules as one script
"""
