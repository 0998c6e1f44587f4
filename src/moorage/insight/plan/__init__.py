"""Where pods would go.

planner       a snapshot, scheduled pod by pod
arrival_orders
              other orders of arrival, if one would place more
decisions     where one pod goes, if an API server accepts it; alike pods share a refusal
evaluation_limit
              how long expressions may take
refused       pods that an API server would not take, as pending
unknown       pods of which nobody can say whether they get a node
placements    the outcome in plain terms
document      the outcome as JSON
"""
