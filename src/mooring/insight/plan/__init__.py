"""Where pods would go.

planner       a snapshot, scheduled pod by pod; and other orders that would place more
decisions     where one pod goes, if an API server accepts it
placements    the outcome in plain terms; stand-in pods for claims that no pod uses
"""
