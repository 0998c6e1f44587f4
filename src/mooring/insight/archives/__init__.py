"""Snapshots as files.

archive       a snapshot in one file, read with checks; tarstream is its outer form
redaction     what is left out because it decides nothing
pseudonyms    other names, the same everywhere
"""
