"""Hardware: boards as data, the sysfs they show, and the nodes and slices they make."""
