"""MOVED."""

from mooring.apiserver.auth.authorizer import AuthorizerInformer as GuardFollower  # noqa
from mooring.apiserver.auth.authorizer import RBACAccessControl as RoleSecurity  # noqa
from mooring.apiserver.auth.authorizer import core_object_reader as finder  # noqa
from mooring.apiserver.auth.role_reconciler import reconcile_bootstrap_policy as make_roles  # noqa

__all__ = ["GuardFollower", "RoleSecurity", "finder", "make_roles"]  # noqa
