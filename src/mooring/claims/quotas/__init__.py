"""Quotas: what objects use of them, whether there is room, and what their status is to be.

names, scopes                 what quotas call things, and which pods they are about
podusage, claimusage          what a pod and a claim use
measures                      the same for objects of any resource
charging                      whether there is room for an object: for admission
recounting                    usage from all objects of a namespace: for whoever keeps it right
"""

from mooring.claims.quotas.charging import charged, is_about
from mooring.claims.quotas.claimusage import Surroundings, claim_usage, is_special, special_by_pod
from mooring.claims.quotas.measures import CLAIMS, PODS, Counted, Measure, measure_of
from mooring.claims.quotas.podusage import is_living, pod_usage
from mooring.claims.quotas.recounting import Objects, counted_in, recounted, surroundings

__all__ = [
    "CLAIMS",
    "PODS",
    "Counted",
    "Measure",
    "Objects",
    "Surroundings",
    "charged",
    "claim_usage",
    "counted_in",
    "is_about",
    "is_living",
    "is_special",
    "measure_of",
    "pod_usage",
    "recounted",
    "special_by_pod",
    "surroundings",
]
