"""What Kubernetes makes of an object before it stores it: defaults, dropped fields, rules."""
