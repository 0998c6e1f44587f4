"""Answers to ResourcePoolStatusRequests: how full the pools of a driver are.

answer  the status of a request, pool by pool
views   what partitions and shared devices of a pool have left
loop    the controller: answers once, deletes old requests
"""

from mooring.controllers.poolstatus.answer import pool_statuses
from mooring.controllers.poolstatus.loop import PoolStatusRequests, RequestMetrics, plan_request

__all__ = ["PoolStatusRequests", "RequestMetrics", "plan_request", "pool_statuses"]
