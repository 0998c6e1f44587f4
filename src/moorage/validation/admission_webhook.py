"""Strategies of webhook configurations."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from moorage.api import names
from moorage.api.admissionregistration import (
    EQUIVALENT,
    FAIL,
    NEVER,
    NO_SIDE_EFFECTS,
    AnyWebhook,
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ServiceReference,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from moorage.api.field_path import Path, root
from moorage.cel.library.strings import FORMATS
from moorage.cel.library.urls import URLError, parse_url
from moorage.validation.admission_rules import (
    EVERYTHING,
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    default_rule,
    excluded_resource_warnings,
    optional_word,
    static_suffix_warnings,
    validate_match_conditions,
    validate_rule,
    validate_static_suffix,
)
from moorage.validation.errors import ErrorList, duplicate, invalid, not_supported, required
from moorage.validation.field_rules import each, each_invalid
from moorage.validation.metadata import next_generation
from moorage.validation.selectors import validate_label_selector
from moorage.validation.strategy import Context, ObjectStrategy

WEBHOOKS = root("webhooks")
SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
REVIEW_VERSIONS = ("v1", "v1beta1")
DEFAULT_PORT = 443
TIMEOUT_S = 10
TIMEOUT_S_MAX = 30
_PORTS = range(1, 65_536)
_URL_FORM = "; desired format: https://host[/path]"

C = TypeVar("C", ValidatingWebhookConfiguration, MutatingWebhookConfiguration)
W = TypeVar("W", bound=AnyWebhook)


class _Options(NamedTuple):
    """What an update need not fulfil, because the stored object does not."""

    checks_conditions: bool = True
    needs_no_side_effects: bool = True
    needs_known_review: bool = True
    needs_unique_names: bool = True
    checks_label_values: bool = True
    preexisting: frozenset[str] = frozenset()


class WebhookStrategy(ObjectStrategy[C]):
    """The strategy of both kinds of webhook configurations."""

    namespaced = False
    qualified_finalizers = False
    rechecks_metadata = True
    allow_unconditional_update = False

    def default(self, value: C, api_version: str, context: Context) -> C:  # noqa: ARG002
        """Set policies, selectors, timeouts and ports."""
        return replace(value, webhooks=tuple(map(_default_webhook, value.webhooks)))

    def prepare_for_create(self, new: C, context: Context) -> C:  # noqa: ARG002
        """Start in generation 1."""
        return replace(new, metadata=replace(new.metadata, generation=1))

    def prepare_for_update(self, new: C, old: C, context: Context) -> C:  # noqa: ARG002
        """Changed webhooks are a new generation."""
        if new.webhooks == old.webhooks:
            return new
        generation = next_generation(old.metadata.generation)
        return replace(new, metadata=replace(new.metadata, generation=generation))

    def validate(self, new: C, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        found = self.validate_metadata(new) + _validate_webhooks(new.webhooks, _Options())
        return found + validate_static_suffix(new.metadata)

    def validate_update(self, new: C, old: C, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything that the old object fulfilled."""
        found = self.validate_metadata_update(new, old)
        return found + _validate_webhooks(new.webhooks, _options(new, old))

    def warnings_on_create(self, new: C) -> list[str]:
        """Warn of rules without effect."""
        return list(excluded_resource_warnings(new.webhooks))

    def warnings_on_update(self, new: C, old: C) -> list[str]:  # noqa: ARG002
        """Warn of the name, too."""
        return static_suffix_warnings(new.metadata) + self.warnings_on_create(new)


class ValidatingWebhookStrategy(WebhookStrategy[ValidatingWebhookConfiguration]):
    """The strategy of ValidatingWebhookConfigurations."""


class MutatingWebhookStrategy(WebhookStrategy[MutatingWebhookConfiguration]):
    """The strategy of MutatingWebhookConfigurations."""


# --- defaults -------------------------------------------------------------------------------------


def _default_webhook(webhook: Any) -> Any:
    changes: dict[str, Any] = {
        "failure_policy": _or(webhook.failure_policy, FAIL),
        "match_policy": _or(webhook.match_policy, EQUIVALENT),
        "namespace_selector": _or(webhook.namespace_selector, EVERYTHING),
        "object_selector": _or(webhook.object_selector, EVERYTHING),
        "timeout_seconds": _or(webhook.timeout_seconds, TIMEOUT_S),
        "rules": tuple(map(default_rule, webhook.rules)),
    }
    if isinstance(webhook, MutatingWebhook):
        changes["reinvocation_policy"] = _or(webhook.reinvocation_policy, NEVER)
    service = webhook.client_config.service
    if service is not None and service.port is None:
        service = replace(service, port=DEFAULT_PORT)
        changes["client_config"] = replace(webhook.client_config, service=service)
    return replace(webhook, **changes)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


# --- rules ----------------------------------------------------------------------------------------


def _options(new: Any, old: Any) -> _Options:
    before = old.webhooks
    conditions = [webhook.match_conditions for webhook in before]
    return _Options(
        checks_conditions=[webhook.match_conditions for webhook in new.webhooks] != conditions,
        needs_no_side_effects=all(hook.side_effects in NO_SIDE_EFFECTS for hook in before),
        needs_known_review=all(
            not hook.admission_review_versions
            or any(each in REVIEW_VERSIONS for each in hook.admission_review_versions)
            for hook in before
        ),
        needs_unique_names=len({hook.name for hook in before}) == len(before),
        checks_label_values=not any(_validate_selectors(hook, root("")) for hook in before),
        preexisting=frozenset(each.expression for listed in conditions for each in listed),
    )


def _validate_webhooks(webhooks: tuple[Any, ...], options: _Options) -> ErrorList:
    found: ErrorList = []
    seen: set[str] = set()
    for position, webhook in enumerate(webhooks):
        path = WEBHOOKS.index(position)
        found += _validate_webhook(webhook, options, path)
        found += _validate_reviews(webhook, options, path.child("admissionReviewVersions"))
        if options.needs_unique_names and webhook.name:
            if webhook.name in seen:
                found.append(duplicate(path.child("name"), webhook.name))
            seen.add(webhook.name)
    return found


def _validate_webhook(webhook: Any, options: _Options, path: Path) -> ErrorList:
    found = _validate_name(webhook.name, path.child("name"))
    found += each(webhook.rules, validate_rule, path.child("rules"))
    found += optional_word(webhook.failure_policy, FAILURE_POLICIES, path.child("failurePolicy"))
    found += optional_word(webhook.match_policy, MATCH_POLICIES, path.child("matchPolicy"))
    allowed = NO_SIDE_EFFECTS if options.needs_no_side_effects else SIDE_EFFECTS
    place = path.child("sideEffects")
    if webhook.side_effects is None:
        found.append(required(place, f"must specify one of {', '.join(allowed)}"))
    elif webhook.side_effects not in allowed:
        found.append(not_supported(place, webhook.side_effects, allowed))
    timeout = webhook.timeout_seconds
    if timeout is not None and not 1 <= timeout <= TIMEOUT_S_MAX:
        detail = "the timeout value must be between 1 and 30 seconds"
        found.append(invalid(path.child("timeoutSeconds"), timeout, detail))
    selectors = _validate_selectors(webhook, path)
    found += selectors if options.checks_label_values else _without_values(selectors)
    if isinstance(webhook, MutatingWebhook):
        place = path.child("reinvocationPolicy")
        found += optional_word(webhook.reinvocation_policy, REINVOCATION_POLICIES, place)
    found += _validate_client_config(webhook.client_config, path.child("clientConfig"))
    if options.checks_conditions:
        found += validate_match_conditions(
            webhook.match_conditions,
            path.child("matchConditions"),
            has_params=False,
            preexisting=options.preexisting,
        )
    return found


def _validate_selectors(webhook: Any, path: Path) -> ErrorList:
    found: ErrorList = []
    if webhook.namespace_selector is not None:
        place = path.child("namespaceSelector")
        found += validate_label_selector(webhook.namespace_selector, place)
    if webhook.object_selector is not None:
        found += validate_label_selector(webhook.object_selector, path.child("objectSelector"))
    return found


def _without_values(errors: ErrorList) -> ErrorList:
    """Return the errors of selectors but those of label values."""
    return [error for error in errors if error.path.segments[-2] != "values"]


def _validate_name(name: str, path: Path) -> ErrorList:
    if not name:
        return [required(path)]
    if faults := names.dns1123_subdomain(name):
        return [invalid(path, name, ",".join(faults))]
    if name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        return [invalid(path, name, detail)]
    return []


def _validate_reviews(webhook: Any, options: _Options, path: Path) -> ErrorList:
    versions = webhook.admission_review_versions
    if not versions:
        return [required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")]
    found: ErrorList = []
    seen: set[str] = set()
    for position, version in enumerate(versions):
        place = path.index(position)
        if version in seen:
            found.append(invalid(place, version, "duplicate version"))
            continue
        seen.add(version)
        found += each_invalid(place, version, FORMATS["dns1035Label"].check(version))
    if options.needs_known_review and seen.isdisjoint(REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        found.append(invalid(path, versions, detail))
    return found


# --- where webhooks run ---------------------------------------------------------------------------


def _validate_client_config(config: WebhookClientConfig, path: Path) -> ErrorList:
    if (config.url is None) == (config.service is None):
        return [required(path, "exactly one of url or service is required")]
    if config.url is not None:
        return _validate_url(config.url, path.child("url"))
    assert config.service is not None
    return _validate_service(config.service, path.child("service"))


def _validate_url(text: str, path: Path) -> ErrorList:
    try:
        url = parse_url(text)
    except URLError as error:
        return [required(path, f"url must be a valid URL: {error}{_URL_FORM}")]
    found: ErrorList = []
    if url.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{_URL_FORM}"
        found.append(invalid(path, url.scheme, detail))
    if not url.host:
        found.append(invalid(path, url.host, f"host must be specified{_URL_FORM}"))
    if url.user is not None:
        detail = "user information is not permitted in the URL"
        found.append(invalid(path, url.user, detail))
    if url.fragment:
        found.append(invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        found.append(invalid(path, url.query, "query parameters are not permitted in the URL"))
    return found


def _validate_service(service: ServiceReference, path: Path) -> ErrorList:
    found: ErrorList = []
    # As in Kubernetes: the names of the two fields are mixed up.
    if not service.namespace:
        found.append(required(path.child("name")))
    if not service.name:
        found.append(required(path.child("namespace")))
    if service.port not in _PORTS:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(invalid(path.child("port"), service.port, detail))
    return found + _validate_service_path(service.path, path.child("path"))


def _validate_service_path(text: str | None, path: Path) -> ErrorList:
    if text in (None, "", "/"):
        return []
    assert text is not None
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    found: ErrorList = []
    if not text.startswith("/"):
        found.append(invalid(path, text, "must start with a '/'"))
    for position, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            found.append(invalid(path, text, f"segment[{position}] may not be empty"))
            continue
        for fault in names.dns1123_subdomain(segment):
            found.append(invalid(path, text, f"segment[{position}]: {fault}"))
    return found
