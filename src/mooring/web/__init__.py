"""The page at /ui/: a fleet of devices as columns, its changes, and answers to questions.

    source ─► Scene ─► Fleet (columns) ─┬─ whole ──► GET /ui/fleet
                                        └─ delta ──► GET /ui/events

columns        columns of numbers, compressed for JSON; names as numbers (pure)
fleet          the tables of a fleet, from a snapshot and device usage (pure)
"""
