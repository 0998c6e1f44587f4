"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook.

Mutating webhooks are called one after the other, each with the object that the previous one
returned; validating ones are called in parallel. A failed call rejects the request, unless the
failure policy is Ignore. Dry runs are rejected if a webhook may have side effects.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec

from moorage.api.admissionregistration import IF_NEEDED, IGNORE, NO_SIDE_EFFECTS, MutatingWebhook
from moorage.api.raw_json import go_json
from moorage.apiserver.dynamic_admission.admission_review import (
    JSON_PATCH,
    AdmissionResponse,
    ReviewError,
    encode_review,
    read_response,
    rejection,
    version_for,
)
from moorage.apiserver.dynamic_admission.attributes import Attributes, ResourceEndpoint
from moorage.apiserver.dynamic_admission.evaluation import (
    INTERRUPTED,
    Matching,
    check_conditions,
    evaluated,
    inputs_of,
)
from moorage.apiserver.dynamic_admission.hook_source import WebhookHook
from moorage.apiserver.dynamic_admission.matching import match_request
from moorage.apiserver.dynamic_admission.mutated_objects import (
    MutationError,
    patched_tree,
    take_tree,
)
from moorage.apiserver.dynamic_admission.reinvocation import ReinvocationContext
from moorage.apiserver.dynamic_admission.service_resolver import resolve_service
from moorage.apiserver.dynamic_admission.webhook_client import CallError, WebhookClient
from moorage.apiserver.http.status import StatusError, bad_request, internal
from moorage.cel.lang.metering import Interrupted
from moorage.kit.go_quote import go_quote

CALLS_MAX = 16  # parallel calls of validating webhooks for one request
MUTATION_KEY = "mutation.webhook.admission.k8s.io/round_{round}_index_{index}"
MUTATING_OPEN_KEY = "failed-open.mutation.webhook.admission.k8s.io/round_{round}_index_{index}"
VALIDATING_OPEN_KEY = "failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}"


async def matched_endpoint(attributes: Attributes, hook: WebhookHook) -> ResourceEndpoint | None:
    """Return the endpoint in whose version to call a webhook, or None if it does not match."""
    endpoint = await match_request(hook.criteria, attributes)
    if endpoint is None or not hook.webhook.match_conditions:
        return endpoint
    program = await hook.program(attributes)
    inputs = await inputs_of(attributes, endpoint)
    try:
        matching = await evaluated(attributes, partial(check_conditions, program, inputs))
    except Interrupted:
        is_ignored = hook.webhook.failure_policy == IGNORE
        matching = Matching(False, "" if is_ignored else INTERRUPTED)
    if matching.error:
        raise attributes.forbidden(matching.error)
    return endpoint if matching.matches else None


async def _call(
    client: WebhookClient, attributes: Attributes, hook: WebhookHook, endpoint: ResourceEndpoint
) -> AdmissionResponse:
    """Return the response of a webhook, or raise CallError, or 400 for an impossible dry run."""
    webhook = hook.webhook
    if attributes.is_dry_run and webhook.side_effects not in NO_SIDE_EFFECTS:
        raise bad_request(f"admission webhook {go_quote(webhook.name)} does not support dry run")
    version = version_for(webhook.admission_review_versions or ())
    if version is None:
        raise CallError(
            "could not create admission objects: webhook does not accept known AdmissionReview "
            "versions (v1, v1beta1)"
        )
    server, uid = attributes.server, attributes.server.new_uid()
    run, user, size = server.workers.run, attributes.user.name, len(attributes.request.body)
    body = await run(user, size, encode_review, attributes, endpoint, version, uid)
    try:
        answer = await client.call(webhook, body, partial(resolve_service, server))
    except CallError as error:
        raise CallError(f"failed to call webhook: {error}") from None
    is_mutating = isinstance(webhook, MutatingWebhook)
    try:
        response = await run(
            user, len(answer), read_response, answer, version, uid, is_mutating=is_mutating
        )
    except ReviewError as error:
        raise CallError(f"received invalid webhook response: {error}") from None
    for key, value in response.annotations.items():
        attributes.request.annotate(f"{webhook.name}/{key}", value)
    attributes.request.warnings.extend(response.warnings)
    return response


def _failed(webhook: str, error: CallError) -> StatusError:
    return internal(f"failed calling webhook {go_quote(webhook)}: {error}")


# --- validating -----------------------------------------------------------------------------------


async def validate_by_webhooks(
    client: WebhookClient, attributes: Attributes, hooks: tuple[WebhookHook, ...]
) -> None:
    """Raise if a webhook rejects a request."""
    asked = []
    for hook in hooks:
        endpoint = await matched_endpoint(attributes, hook)
        if endpoint is not None:
            asked.append((hook, endpoint))
    places = asyncio.Semaphore(CALLS_MAX)

    async def ask(index: int, hook: WebhookHook, endpoint: ResourceEndpoint) -> StatusError | None:
        async with places:
            return await _refusal(client, attributes, hook, endpoint, index)

    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(ask(index, *each)) for index, each in enumerate(asked)]
    for each in asking:
        if (refused := each.result()) is not None:
            raise refused


async def _refusal(
    client: WebhookClient,
    attributes: Attributes,
    hook: WebhookHook,
    endpoint: ResourceEndpoint,
    index: int,
) -> StatusError | None:
    name = hook.webhook.name
    try:
        response = await _call(client, attributes, hook, endpoint)
    except StatusError as error:
        return error
    except CallError as error:
        if hook.webhook.failure_policy != IGNORE:
            return _failed(name, error)
        attributes.request.annotate(VALIDATING_OPEN_KEY.format(index=index), name)
        return None
    return None if response.is_allowed else rejection(name, response.status)


# --- mutating -------------------------------------------------------------------------------------


async def mutate_by_webhooks(
    client: WebhookClient,
    attributes: Attributes,
    hooks: tuple[WebhookHook, ...],
    context: ReinvocationContext,
) -> None:
    """Change the object of a request, or raise if a webhook rejects it."""
    context.begin(attributes.new)
    for index, hook in enumerate(hooks):
        endpoint = await matched_endpoint(attributes, hook)
        if endpoint is None or not context.may_run(hook.uid):
            continue
        webhook = hook.webhook
        marks = {"round": int(context.is_reinvoke), "index": index}
        is_changed = False
        try:
            response = await _call(client, attributes, hook, endpoint)
            is_changed = await _apply(attributes, hook, endpoint, response)
        except CallError as error:
            if webhook.failure_policy != IGNORE:
                raise _failed(webhook.name, error) from None
            attributes.request.annotate(MUTATING_OPEN_KEY.format(**marks), webhook.name)
        finally:
            told = {
                "configuration": hook.configuration,
                "webhook": webhook.name,
                "mutated": is_changed,
            }
            attributes.request.annotate(MUTATION_KEY.format(**marks), go_json(told))
        if_needed = getattr(webhook, "reinvocation_policy", None) == IF_NEEDED
        context.note(hook.uid, is_changed=is_changed, if_needed=if_needed)
    context.end(attributes.new)


async def _apply(
    attributes: Attributes,
    hook: WebhookHook,
    endpoint: ResourceEndpoint,
    response: AdmissionResponse,
) -> bool:
    """Apply the patch of a webhook, and return whether the object differs."""
    name = hook.webhook.name
    if not response.is_allowed:
        raise rejection(name, response.status)
    if not response.patch:
        return False
    try:
        operations: Any = msgspec.json.decode(response.patch)
    except (msgspec.DecodeError, RecursionError) as error:
        fact = f"received undecodable patch in webhook response: {error}"
        raise CallError(fact) from None
    if not operations:
        return False
    if attributes.new is None:
        raise internal(
            f"admission webhook {go_quote(name)} attempted to modify the object, which is not "
            "supported for this operation"
        )
    if response.patch_type != JSON_PATCH:
        raise CallError(f"unsupported patch type {go_quote(response.patch_type)}")
    run, user = attributes.server.workers.run, attributes.user.name
    size = len(attributes.request.body) + len(response.patch)
    live = attributes.object(endpoint)
    try:
        tree = await run(user, size, patched_tree, live, operations)
    except MutationError as error:
        raise internal(str(error)) from None
    if tree is None:
        raise internal("testing value failed: test failed")
    return await run(user, size, take_tree, attributes, endpoint, tree, is_strict=False)
