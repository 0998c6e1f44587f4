"""Pods on this node, from bound to gone: containers in order, restarts, ends, and their status."""
