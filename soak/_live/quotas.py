"""Admission by quota, as the server has it."""

from __future__ import annotations

from typing import Any

from moorage.api.core import ResourceQuota
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import DeviceClass, ResourceClaim
from moorage.claims.extended_resources import DeviceClassIndex
from moorage.claims.pod_claims import ClaimRejection as NoRoom
from moorage.claims.quotas import CLAIMS, PODS, charged, evaluator_for, recalculated, usage_context
from moorage.controllers.controller import WriteRefused
from tests.controllers.model import Model


def check_quota(quota: ResourceQuota | None, value: Any, model: Model) -> WriteRefused | None:
    """Return why a claim exceeds a quota, or None."""
    if quota is None or not isinstance(value, ResourceClaim):
        return None
    classes = DeviceClassIndex()
    for each in model.objects.list(DeviceClass):
        classes.put_class(each)
    objects = {
        CLAIMS: tuple(model.objects.list(ResourceClaim)),
        PODS: tuple(model.objects.list(Pod)),
    }
    around = usage_context(objects, now=model.now, classes=classes)
    measure = evaluator_for(CLAIMS, around)
    assert measure is not None
    outcome = charged([recalculated(quota, objects, around)], measure, value)
    return WriteRefused("Forbidden", outcome.reason) if isinstance(outcome, NoRoom) else None
