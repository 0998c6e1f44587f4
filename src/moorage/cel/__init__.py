"""CEL as the API server and the scheduler of Kubernetes 1.37 evaluate it.

lang           the language: parse, check, plan, evaluate, estimate and track costs
library        Kubernetes' own libraries
device         compile and evaluate expressions about devices; the cost limit
device_values  devices as values, and values as matches and attributes
admission      expressions of admission policies and match conditions
mutation_types the types that mutating policies write
device_batch   many devices of a driver: in columns, and answers that are kept
"""
