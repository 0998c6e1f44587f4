"""Clusters through weeks of churn, and what must not grow.

growth     samples of a figure over time, and how much it grows
workloads  namespaces with pods, claims, Jobs and Deployments that come and go
simulated  a cluster in one process, in simulated time
programs   real programs, through as many pods as fit into the time
"""
