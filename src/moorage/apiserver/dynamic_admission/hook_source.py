"""The policies and webhooks of the cluster, indexed for requests; an informer feeds them.

    policies, bindings ─┐
                        ├─ hooks ─ index: hooks that may be about a request, by its endpoint
    webhooks ───────────┘

The index is built on demand and dropped with every change. A request without matching hooks costs
one look-up; on a server without hooks it costs nothing.

# hook: a policy with its bindings, or a webhook, with its match criteria
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

from moorage.api.admissionregistration import (
    GROUP,
    AnyBinding,
    AnyPolicy,
    AnyWebhook,
    MatchResources,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from moorage.api.codec import encode_json
from moorage.apiserver.dynamic_admission.attributes import Attributes
from moorage.apiserver.dynamic_admission.matching import MatchCriteria, may_match
from moorage.apiserver.dynamic_admission.policy_programs import (
    PolicyProgram,
    compile_conditions,
    compile_mutating,
    compile_validating,
)

WATCHED_RESOURCES: Final = (
    (GROUP, "mutatingadmissionpolicies"),
    (GROUP, "mutatingadmissionpolicybindings"),
    (GROUP, "mutatingwebhookconfigurations"),
    (GROUP, "validatingadmissionpolicies"),
    (GROUP, "validatingadmissionpolicybindings"),
    (GROUP, "validatingwebhookconfigurations"),
)
INDEX_MAX: Final = 4096
NO_MATCH: Final = MatchResources()


class Hook:
    """A policy or webhook that may be called for a request."""

    def __init__(self, criteria: MatchCriteria, compile_: Callable[[], PolicyProgram]) -> None:
        self.criteria = criteria
        self._compile = compile_
        self._size = 0
        self._program: asyncio.Future[PolicyProgram] | None = None

    async def program(self, attributes: Attributes) -> PolicyProgram:
        """Return the compiled expressions; the first call compiles them in a worker thread."""
        known = self._program
        if known is not None and not (known.done() and known.cancelled()):
            return await asyncio.shield(known)
        run = attributes.server.workers.run_expressions
        work = run(attributes.user.name, self._size, self._compile)
        self._program = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(self._program)
        except Exception:  # such as too many requests; the next request tries again
            self._program = None
            raise


class PolicyHook(Hook):
    """A policy and its bindings."""

    def __init__(self, policy: AnyPolicy, bindings: tuple[AnyBinding, ...]) -> None:
        match = policy.spec.match_constraints or NO_MATCH
        super().__init__(MatchCriteria.of_resources(match), self._compiled)
        self.policy = policy
        self.bindings = tuple((each, _criteria(each)) for each in bindings)
        self._size = len(encode_json(policy))

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.policy.metadata.name

    def _compiled(self) -> PolicyProgram:
        if isinstance(self.policy, MutatingAdmissionPolicy):
            return compile_mutating(self.policy)
        return compile_validating(self.policy)


class WebhookHook(Hook):
    """A webhook of a configuration."""

    def __init__(self, configuration: str, webhook: AnyWebhook, number: int) -> None:
        super().__init__(
            MatchCriteria.of_webhook(webhook), lambda: compile_conditions(self.webhook)
        )
        self.configuration = configuration
        self.webhook = webhook
        self.uid = f"{configuration}/{webhook.name}/{number}"
        self._size = sum(len(each.expression) for each in webhook.match_conditions)


def _criteria(binding: AnyBinding) -> MatchCriteria | None:
    match = binding.spec.match_resources
    return None if match is None else MatchCriteria.of_resources(match)


H = TypeVar("H", bound=Hook)


class HookIndex(Generic[H]):
    """All hooks of one type, and which of them may match a request."""

    def __init__(self, make: Callable[[], Iterable[H]]) -> None:
        self._make = make
        self._hooks: tuple[H, ...] | None = ()
        self._index: dict[tuple[Any, ...], tuple[H, ...]] = {}

    def forget(self) -> None:
        """Drop the index, which is rebuilt when it is next needed."""
        self._hooks = None
        self._index.clear()

    def hooks_for(self, attributes: Attributes) -> tuple[H, ...]:
        """Return the hooks that may match a request."""
        if self._hooks is None:
            self._hooks = tuple(self._make())
        if not self._hooks:
            return ()
        key = (
            attributes.endpoint,
            attributes.subresource,
            attributes.operation,
            bool(attributes.namespace),
            # A custom resource may have got other versions since.
            getattr(attributes.server.resources, "generation", 0),
        )
        found = self._index.get(key)
        if found is None:
            if len(self._index) >= INDEX_MAX:
                self._index.clear()
            found = tuple(hook for hook in self._hooks if may_match(hook.criteria, attributes))
            self._index[key] = found
        return found


class HookSource:
    """All hooks; an EventHandler of the objects that configure them."""

    def __init__(self) -> None:
        self.objects: dict[type, dict[str, Any]] = {kind: {} for kind in _KINDS}
        self._made: dict[tuple[Any, ...], PolicyHook] = {}
        self.validating_policies = HookIndex(lambda: self._policies(*_VALIDATING))
        self.mutating_policies = HookIndex(lambda: self._policies(*_MUTATING))
        self.validating_webhooks = HookIndex(lambda: self._webhooks(ValidatingWebhookConfiguration))
        self.mutating_webhooks = HookIndex(lambda: self._webhooks(MutatingWebhookConfiguration))
        self.is_empty = True

    def on_update(self, value: Any) -> None:
        """Add or update an object."""
        self.objects[type(value)][value.metadata.name] = value
        self._changed()

    def on_delete(self, value: Any) -> None:
        """Remove an object."""
        self.objects[type(value)].pop(value.metadata.name, None)
        self._changed()

    def _changed(self) -> None:
        for index in (
            self.validating_policies,
            self.mutating_policies,
            self.validating_webhooks,
            self.mutating_webhooks,
        ):
            index.forget()
        self.is_empty = not any(self.objects.values())

    def _policies(self, policy_kind: type, binding_kind: type) -> list[PolicyHook]:
        """Return the policies that have bindings, by name; unchanged ones stay compiled."""
        bindings: dict[str, list[Any]] = {}
        for _, binding in sorted(self.objects[binding_kind].items()):
            bindings.setdefault(binding.spec.policy_name, []).append(binding)
        found, kept = [], {}
        for name in sorted(bindings.keys() & self.objects[policy_kind].keys()):
            policy = self.objects[policy_kind][name]
            versions = [
                (each.metadata.uid, each.metadata.resource_version)
                for each in (policy, *bindings[name])
            ]
            key = (policy_kind, name, *versions)
            hook = self._made.get(key) or PolicyHook(policy, tuple(bindings[name]))
            kept[key] = hook
            found.append(hook)
        others = {key: hook for key, hook in self._made.items() if key[0] is not policy_kind}
        self._made = {**others, **kept}
        return found

    def _webhooks(self, kind: type) -> list[WebhookHook]:
        """Return the webhooks of all configurations, in the order of their names."""
        return [
            WebhookHook(name, webhook, number)
            for name, configuration in sorted(self.objects[kind].items())
            for number, webhook in enumerate(configuration.webhooks)
        ]


_VALIDATING = (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)
_MUTATING = (MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding)
_KINDS = (
    *_VALIDATING,
    *_MUTATING,
    ValidatingWebhookConfiguration,
    MutatingWebhookConfiguration,
)
