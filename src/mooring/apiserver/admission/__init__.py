"""What becomes of new objects before they are stored, beyond rules and permissions.

admission        the door: completes new objects, and charges what is written to quotas
memory           what admission knows without asking the store
priorities       priority classes give pods and groups their priorities
accounts         service accounts give pods their identity
runtime_classes  what the runtime class of a pod adds to it
charging         quotas have room for what is written, or it is refused
recounting       the status of quotas stays right, whatever happens
"""
