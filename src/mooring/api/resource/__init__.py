"""The API group resource.k8s.io: v1 is the hub that the other versions convert to."""
