"""The page at /ui/: a fleet of devices as columns, its changes, and answers to questions.

    source ─► feed ─► view: rights ─► scene ─► fleet ─┬─ whole ──► GET /ui/fleet
                                        │             └─ delta ──► GET /ui/events
                                        └─► moment ─► questions

columns        compact columns of numbers, numbered strings, and tables with stable rows
fleet          a fleet as tables of columns, and the changes from one to the next
scene          the objects of a cluster, and their fleet, updated with each change
pool_usages    the device usage of all pools, updated as objects change
device_rows    nodes, devices and holdings as rows
partitions     devices that are parts of other devices
owner_rows     claims and pods as rows
pending        waiting pods grouped by cause, and the devices they request
causes         finds the causes of all waiting pods of a plan
rights         what a viewer may see

feed           the objects of a source, and the followers of their changes
cluster_feed   a cluster as a source
view           what viewers with the same rights see, and the stream of changes
past           earlier moments
store_past     those that a store still keeps from before
questions      explain, what-if, CEL and details: pure answers about a moment
asking         questions in worker threads, with turns and deadlines

page           routes requests
login          one-time links, and session cookies
messages       security headers, origin checks, request and response bodies
errors         errors, each with its HTTP status
static_files   the files of the client, in `static`
door           the page as an extension of the API server
local_server   serves the page alone, on loopback
single_file    the page as one HTML file
bundle         joins the modules of the page into one script
"""
