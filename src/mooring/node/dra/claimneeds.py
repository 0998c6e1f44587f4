"""MOVED."""

from mooring.node.dra.claim_requests import check_found as check_found  # noqa
from mooring.node.dra.claim_requests import claim_name as claim_name  # noqa
from mooring.node.dra.claim_requests import entries_of as entries_of  # noqa
from mooring.node.dra.claim_requests import features_of as features_of  # noqa

__all__ = ["check_found", "claim_name", "entries_of", "features_of"]  # noqa
