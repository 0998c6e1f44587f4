"""MOVED."""
