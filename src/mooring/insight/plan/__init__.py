"""Where pods would go.

plan          a snapshot, scheduled pod by pod
placements    the outcome in plain terms
standins      pods for claims and templates that no pod uses
"""
