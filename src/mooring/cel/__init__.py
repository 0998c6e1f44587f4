"""CEL as the API server and the scheduler of Kubernetes 1.37 speak it."""
