"""What programs that wait, listen or write files need, and nothing of Kubernetes.

clock            time as an argument: the real clock, one for tests, and simulated time
backoff          delays that grow with each failure
cron_schedule    cron schedules, evaluated in time zones
checkpoints      work in threads that ends once nobody waits for it
cancellation     whether a task was cancelled, or only a call that it waits for
workqueue        keys to reconcile: deduplicated, one worker per key, retried with backoff
bulkhead         what fails is set aside, named once and counted; tasks that are begun again
metrics          counters, gauges and histograms in Prometheus' text format
connections      accept connections at a port, with bounds on clients before they speak HTTP
http_head        the first line and the headers of HTTP messages
websocket        WebSocket frames without a network
spdy             SPDY/3.1 frames without a network
atomic_file      files that are whole or absent
paths_beneath    paths below a folder, made of untrusted names: no link is followed
lru              a cache that evicts the least recently used key first
remembered       results for short texts that come again
generated_names  random uids and name suffixes
similar_names    which known name was meant
printable        text from outside, made safe for terminals and logs
go_duration      durations as Go writes and reads them
go_quote         strings as Go's %q prints them
go_platform      Go's names for operating systems and processors
system           which operating system a program needs, and the signals that stop it
process_memory   the garbage collector and allocator of a program that runs for long
errors           the base of all errors that Moorage raises on purpose
extras           optional packages, and which extra of the distribution installs them
"""
