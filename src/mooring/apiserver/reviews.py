"""Questions about users that are answered at once: who am I, may I, may they."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from mooring.api.codec import decode_tree, to_tree
from mooring.api.errors import ApiError
from mooring.api.kinds import Kind
from mooring.api.timestamp import Timestamp
from mooring.apiserver.calls import User
from mooring.apiserver.patching import FieldManager
from mooring.apiserver.patching.tables import find_shape
from mooring.apiserver.security import Attributes, Security
from mooring.apiserver.served import Review
from mooring.apiserver.status import bad_request

Tree = dict[str, Any]


async def answer_review(
    review: Review, tree: Tree, user: User, security: Security, now: Timestamp
) -> Tree:
    """Return a review with its answer as status."""
    asked = tree.get("spec")
    spec: Tree = asked if isinstance(asked, dict) else {}
    match review.kind:
        case "SelfSubjectReview":
            status = {"userInfo": user_tree(user)}
        case "SelfSubjectAccessReview":
            status = await _access(spec, user, security)
        case "SubjectAccessReview" | "LocalSubjectAccessReview":
            status = await _access(spec, _user_of(spec), security)
        case "SelfSubjectRulesReview":
            status = await _rules(user, security)
        case "TokenReview":
            status = await _token(spec, security)
        case _:
            raise bad_request(f"{review.kind} is not answered")
    answer: Tree = {
        "kind": review.kind,
        "apiVersion": f"{review.group}/{review.version}",
        "metadata": tree.get("metadata") or {},
        "status": status,
    }
    if review.kind == "SelfSubjectReview":
        answer["metadata"] = {"creationTimestamp": str(now)}
    else:
        answer["spec"] = {} if review.kind == "SelfSubjectRulesReview" else spec
    return answer


def with_owners(answer: Tree, asked: Tree, kind: Kind, *, manager: str, now: Timestamp) -> Tree:
    """Return an answer that tells who set the question's fields, if it is one that does so."""
    owners = _field_manager(kind)
    struct: type[Any] = kind.struct
    if owners is None:
        return answer
    try:
        typed = {**asked, "apiVersion": kind.api_version, "kind": kind.name}
        question = to_tree(decode_tree(typed, struct).value)
    except ApiError as error:
        raise bad_request(f"the {kind.name} cannot be read: {error}") from None
    owned = owners.update(None, question, manager=manager, now=str(now))
    entries = owned["metadata"].get("managedFields")
    metadata = {**(answer.get("metadata") or {}), **({"managedFields": entries} if entries else {})}
    return {**answer, "metadata": metadata}


@cache
def _field_manager(kind: Kind) -> FieldManager | None:
    is_kept = find_shape(kind.api_version, kind.name) is not None
    return FieldManager(kind) if is_kept else None


def user_tree(user: User) -> Tree:
    """Return a user as reviews tell of one."""
    tree: Tree = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        tree["uid"] = user.uid
    if user.extra:
        tree["extra"] = {name: list(values) for name, values in user.extra.items()}
    return tree


def _user_of(spec: Tree) -> User:
    name, groups = spec.get("user") or "", spec.get("groups") or []
    if not isinstance(name, str) or not isinstance(groups, list) or not (name or groups):
        raise bad_request("spec.user: at least one of user or group must be specified")
    return User(name, tuple(str(group) for group in groups), str(spec.get("uid") or ""))


async def _access(spec: Tree, user: User, security: Security) -> Tree:
    decision = await security.authorize(user, _attributes(spec))
    status: Tree = {"allowed": decision.is_allowed}
    return {**status, "reason": decision.reason} if decision.reason else status


def _attributes(spec: Tree) -> Attributes:
    match spec:
        case {"resourceAttributes": dict(asked)}:
            return Attributes(
                _text(asked, "verb"),
                _text(asked, "group"),
                _text(asked, "version"),
                _text(asked, "resource"),
                _text(asked, "subresource"),
                _text(asked, "namespace"),
                _text(asked, "name"),
            )
        case {"nonResourceAttributes": dict(asked)}:
            return Attributes(_text(asked, "verb"), path=_text(asked, "path"))
    raise bad_request("spec: exactly one of nonResourceAttributes or resourceAttributes is needed")


def _text(tree: Mapping[str, Any], name: str) -> str:
    value = tree.get(name, "")
    return value if isinstance(value, str) else ""


async def _rules(user: User, security: Security) -> Tree:
    everything = await security.authorize(user, Attributes("*", "*", "*", "*"))
    resources, paths = [], []
    if everything.is_allowed:
        resources = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}


async def _token(spec: Tree, security: Security) -> Tree:
    token = _text(spec, "token")
    found = await security.authenticate({"authorization": f"Bearer {token}"}) if token else None
    if found is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user_tree(found)}
