"""The PodSecurity plugin: pods keep to the level that the labels of their namespace ask for.

    written                 enforce             audit                       warn
    pod                     403 Forbidden       annotation of the event     Warning header
    pod template            –                   annotation of the event     Warning header
    labels of a namespace   422 if unreadable; warnings about pods that a new level would refuse

An update of a pod is evaluated if it changes images or adds containers: nothing else that may
change has a say in its security.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from moorage.api.codec import to_tree
from moorage.api.core import Namespace, Pod
from moorage.api.core.pod import Container
from moorage.api.gates import BINARY_MINOR, Gates
from moorage.apiserver.admission.existing_pods import ExistingPods
from moorage.apiserver.http.status import invalid, not_found
from moorage.apiserver.resources import Resources
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.kit.go_quote import go_quote
from moorage.kit.metrics import Counter, Family
from moorage.validation.errors import ErrorList
from moorage.validation.pod_security import (
    EvaluatedPod,
    Level,
    LevelVersion,
    PodEvaluator,
    PodSecurityConfiguration,
    PodSecurityPolicy,
    PolicyViolations,
    policy_of,
)
from moorage.validation.pod_security.levels import LABEL_PREFIX, VERSION_SUFFIX

LARGE: Final = 500  # containers of a pod

ALLOW, DENY = "allow", "deny"

# Where kinds have a pod template.
TEMPLATES: Final = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
}

# Subresources that cannot change the spec of a pod; any other is evaluated.
_HARMLESS: Final = frozenset(
    {"attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"}
)


class PodSecurityMetrics:
    """Counts of evaluations, exemptions and errors, under Kubernetes' names."""

    def __init__(self) -> None:
        request = ("request_operation", "resource", "subresource")
        self.evaluations = Counter(
            "pod_security_evaluations_total",
            "Evaluations of pods and pod templates against the level of a mode.",
            ("decision", "policy_level", "policy_version", "mode", *request),
        )
        self.exemptions = Counter(
            "pod_security_exemptions_total", "Requests that the configuration exempts.", request
        )
        self.errors = Counter(
            "pod_security_errors_total",
            "Requests whose policy could not be read; not fatal: the restricted level applied.",
            ("fatal", *request),
        )

    def families(self) -> Iterator[Family]:
        """Yield the metrics."""
        yield from (self.evaluations, self.exemptions, self.errors)


class _Attributes(NamedTuple):
    """A write that is evaluated."""

    request: ResourceRequest
    new: Any
    old: Any
    is_pod: bool

    @property
    def labels(self) -> tuple[str, str, str]:
        """The labels of its metrics."""
        operation = "create" if self.old is None else "update"
        subresource = self.request.target.subresource
        return operation, "pod" if self.is_pod else "controller", subresource

    def annotate(self, name: str, text: str) -> None:
        """Add an annotation to the audit event."""
        self.request.annotate(LABEL_PREFIX + name, text)


class PodSecurityAdmission:
    """Evaluates pods, pod templates and the labels of namespaces."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        configuration: PodSecurityConfiguration,
        *,
        gates: Gates,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.metrics = PodSecurityMetrics()
        self._namespaces = resources.of("", "namespaces")
        self._configuration = configuration
        self._evaluator = PodEvaluator(gates.versions.emulated)
        self._existing = ExistingPods(
            registry, resources, self._evaluator, configuration.exempt_runtime_classes, clock=clock
        )

    async def validate(
        self, request: ResourceRequest, new: Any, old: Any, namespace: Namespace | None
    ) -> None:
        """Raise why an object may not be written; warn and annotate as its namespace asks."""
        subresource = request.target.subresource
        which = (request.resource.group, request.resource.plural)
        if which == ("", "namespaces"):
            if not subresource:
                await self._namespace(request, new, old)
        elif which == ("", "pods"):
            if subresource not in _HARMLESS:
                await self._pod(_Attributes(request, new, old, is_pod=True), namespace)
        elif which in TEMPLATES and not subresource:
            await self._controller(_Attributes(request, new, old, is_pod=False), namespace)

    # --- pods and pod templates ---------------------------------------------------------------

    async def _pod(self, attributes: _Attributes, namespace: Namespace | None) -> None:
        if self._is_exempt(attributes):
            return
        if namespace is None:
            self.metrics.errors.inc("true", *attributes.labels)
            raise not_found(self._namespaces.about, attributes.request.target.namespace)
        policy, errors = self._policy(namespace)
        if not errors and policy.is_privileged:
            self._count(ALLOW, policy.enforce, "enforce", attributes)
            attributes.annotate("enforce-policy", str(LevelVersion()))
            return
        old = attributes.old
        if old is None or is_significant(attributes.new, old):
            await self._evaluate(attributes, policy, errors, to_tree(attributes.new))

    async def _controller(self, attributes: _Attributes, namespace: Namespace | None) -> None:
        if self._is_exempt(attributes) or namespace is None:
            return
        policy, errors = self._policy(namespace)
        if not errors and policy.audit.level is policy.warn.level is Level.PRIVILEGED:
            return
        resource = attributes.request.resource
        tree = to_tree(attributes.new)
        for name in TEMPLATES[resource.group, resource.plural]:
            tree = tree.get(name) if isinstance(tree, dict) else None
        if tree is not None:
            await self._evaluate(attributes, policy, errors, tree)

    async def _evaluate(
        self, attributes: _Attributes, policy: PodSecurityPolicy, errors: ErrorList, tree: Any
    ) -> None:
        """Evaluate a pod in each mode; each level and version once."""
        pod = EvaluatedPod(tree)
        if pod.runtime_class in self._configuration.exempt_runtime_classes:
            self._exempt(attributes, "runtimeClass")
            return
        if errors:
            attributes.annotate("error", f"Failed to parse policy: {_aggregate(errors)}")
            self.metrics.errors.inc("false", *attributes.labels)
        known: dict[LevelVersion, PolicyViolations] = {}

        async def violations(wanted: LevelVersion) -> PolicyViolations:
            if wanted not in known:
                known[wanted] = await self._violations(wanted, pod)
            return known[wanted]

        refused: PolicyViolations | None = None
        if attributes.is_pod:
            attributes.annotate("enforce-policy", str(policy.enforce))
            refused = await violations(policy.enforce)
            decision = DENY if refused else ALLOW
            self._count(decision, policy.enforce, "enforce", attributes)
        if found := await violations(policy.audit):
            attributes.annotate("audit-violations", _would_violate(policy.audit, found))
            self._count(DENY, policy.audit, "audit", attributes)
        if refused:
            why = f'violates PodSecurity "{policy.enforce}": {refused}'
            raise attributes.request.forbidden(attributes.new, why)
        if found := await violations(policy.warn):
            attributes.request.warnings.append(_would_violate(policy.warn, found))
            self._count(DENY, policy.warn, "warn", attributes)

    async def _violations(self, wanted: LevelVersion, pod: EvaluatedPod) -> PolicyViolations:
        """Evaluate a pod; between checks of a large one, other requests get their turn."""
        if len(pod.containers) <= LARGE:
            return self._evaluator.evaluate(wanted, pod)
        found = []
        for check in self._evaluator.checks(wanted):
            await asyncio.sleep(0)
            found.append(check(pod))
        return PolicyViolations(tuple(each for each in found if each is not None))

    def _policy(self, namespace: Namespace) -> tuple[PodSecurityPolicy, ErrorList]:
        return policy_of(namespace.metadata.labels, self._configuration.defaults)

    def _is_exempt(self, attributes: _Attributes) -> bool:
        request = attributes.request
        if request.target.namespace in self._configuration.exempt_namespaces:
            self._exempt(attributes, "namespace")
            return True
        if request.user.name in self._configuration.exempt_users:
            self._exempt(attributes, "user")
            return True
        return False

    def _exempt(self, attributes: _Attributes, reason: str) -> None:
        self.metrics.exemptions.inc(*attributes.labels)
        attributes.annotate("exempt", reason)

    def _count(
        self, decision: str, policy: LevelVersion, mode: str, attributes: _Attributes
    ) -> None:
        version, minor = str(policy.version), policy.version.minor
        if policy.level is Level.PRIVILEGED:
            version = "latest"
        elif minor is not None and minor > BINARY_MINOR:
            version = "future"  # Labels of metrics are bounded, those of namespaces are not.
        self.metrics.evaluations.inc(decision, policy.level, version, mode, *attributes.labels)

    # --- namespaces ---------------------------------------------------------------------------

    async def _namespace(self, request: ResourceRequest, new: Namespace, old: Any) -> None:
        """Refuse unreadable labels, unless they are as before; warn of pods that violate them."""
        policy, errors = self._policy(new)
        before, old_errors = (None, []) if old is None else self._policy(old)
        name = new.metadata.name
        if errors and errors != old_errors:
            raise invalid(request.resource.about, name, errors)
        if before is not None and not _is_stricter(policy.enforce, before.enforce):
            return
        if name in self._configuration.exempt_namespaces:
            request.warnings.extend(self._ignored(name, policy, new.metadata.labels))
        elif before is not None:
            request.warnings.extend(await self._existing.warnings(name, policy.enforce))

    def _ignored(
        self, name: str, policy: PodSecurityPolicy, labels: Mapping[str, str]
    ) -> Iterator[str]:
        """Yield a warning that the labels of an exempt namespace have no effect."""
        if policy.is_privileged or policy.is_equivalent(self._configuration.defaults):
            return
        modes = []
        for mode, wanted in policy._asdict().items():
            label = LABEL_PREFIX + mode
            is_set = label in labels or label + VERSION_SUFFIX in labels
            if is_set and wanted.level is not Level.PRIVILEGED:
                modes.append(f"{mode}={wanted}")
        yield (
            f"namespace {go_quote(name)} is exempt from Pod Security, and the policy "
            f"({', '.join(modes)}) will be ignored"
        )


def _is_stricter(new: LevelVersion, old: LevelVersion) -> bool:
    """Return whether a level may refuse what another one allows; versions may differ in both."""
    if new == old or new.level is Level.PRIVILEGED:
        return False
    return new.version != old.version or new.level.strictness > old.level.strictness


def _would_violate(policy: LevelVersion, found: PolicyViolations) -> str:
    return f'would violate PodSecurity "{policy}": {found}'


def _aggregate(errors: ErrorList) -> str:
    shown = ", ".join(map(str, errors))
    return shown if len(errors) == 1 else f"[{shown}]"


def is_significant(new: Pod, old: Pod) -> bool:
    """Return whether an update of a pod is evaluated: other images, or further containers."""
    spec, before = new.spec, old.spec
    if _images(spec.containers) != _images(before.containers):
        return True
    if _images(spec.init_containers) != _images(before.init_containers):
        return True
    known = {container.name: container.image for container in before.ephemeral_containers}
    return any(known.get(each.name) != each.image for each in spec.ephemeral_containers)


def _images(containers: tuple[Container, ...]) -> list[str]:
    return [container.image for container in containers]
