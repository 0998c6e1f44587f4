"""Admission by quota, as the server has it."""

from __future__ import annotations

from typing import Any

from mooring.api.core import ResourceQuota
from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import DeviceClass, ResourceClaim
from mooring.claims.classindex import ClassIndex
from mooring.claims.quotas import CLAIMS, PODS, charged, measure_of, recounted, surroundings
from mooring.claims.refusals import Refused as NoRoom
from mooring.controllers.controller import Refused
from mooring.controllers.model import Model


def check_quota(quota: ResourceQuota | None, value: Any, model: Model) -> Refused | None:
    """Return why a quota has no room for a claim, if that is so."""
    if quota is None or not isinstance(value, ResourceClaim):
        return None
    classes = ClassIndex()
    for each in model.objects.all(DeviceClass):
        classes.put_class(each)
    objects = {
        CLAIMS: tuple(model.objects.all(ResourceClaim)),
        PODS: tuple(model.objects.all(Pod)),
    }
    around = surroundings(objects, now=model.now, classes=classes)
    measure = measure_of(CLAIMS, around)
    assert measure is not None
    outcome = charged([recounted(quota, objects, around)], measure, value)
    return Refused("Forbidden", outcome.reason) if isinstance(outcome, NoRoom) else None
