"""Claims on this node: drivers, what was prepared for which pod, and the health of devices."""
