"""The compiled expressions of policies, once for each version of a policy.

An expression that does not compile, because it passed the validation of an older version, fails
when it is evaluated; the failure policy decides what happens then.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from moorage.api.admissionregistration import (
    FAIL,
    JSON_PATCH,
    AnyWebhook,
    MatchCondition,
    MutatingAdmissionPolicy,
    ValidatingAdmissionPolicy,
    Validation,
    Variable,
)
from moorage.cel.admission import AdmissionCompiler, CompiledExpression, Declared, Returns

_WITHOUT_AUTHORIZER = {True: Declared(True, False), False: Declared(False, False)}


class NamedCondition(NamedTuple):
    """A match condition."""

    name: str
    compiled: CompiledExpression


class CompiledValidation(NamedTuple):
    """A validation, with its message expression if it has one."""

    validation: Validation
    compiled: CompiledExpression
    message: CompiledExpression | None


class CompiledAnnotation(NamedTuple):
    """An audit annotation."""

    key: str
    expression: str
    compiled: CompiledExpression


class CompiledMutation(NamedTuple):
    """A mutation: a JSON patch, or an apply configuration."""

    is_json_patch: bool
    compiled: CompiledExpression


class PolicyProgram(NamedTuple):
    """All expressions of a policy, or the match conditions of a webhook."""

    failure_policy: str
    variables: Mapping[str, CompiledExpression] = MappingProxyType({})
    conditions: tuple[NamedCondition, ...] = ()
    validations: tuple[CompiledValidation, ...] = ()
    annotations: tuple[CompiledAnnotation, ...] = ()
    mutations: tuple[CompiledMutation, ...] = ()


def compile_validating(policy: ValidatingAdmissionPolicy) -> PolicyProgram:
    """Return the program of a validating policy."""
    spec, compiler = policy.spec, AdmissionCompiler()
    declared = Declared(params=spec.param_kind is not None)
    _add_variables(compiler, spec.variables, declared)
    messages = _WITHOUT_AUTHORIZER[declared.params]
    return PolicyProgram(
        spec.failure_policy or FAIL,
        compiler.variables,
        _conditions(compiler, spec.match_conditions, declared),
        tuple(
            CompiledValidation(
                each,
                compiler.compile(each.expression, Returns.BOOL, declared),
                compiler.compile(each.message_expression, Returns.STRING, messages)
                if each.message_expression
                else None,
            )
            for each in spec.validations
        ),
        tuple(
            CompiledAnnotation(
                each.key,
                each.value_expression,
                compiler.compile(each.value_expression, Returns.STRING_OR_NULL, declared),
            )
            for each in spec.audit_annotations
        ),
    )


def compile_mutating(policy: MutatingAdmissionPolicy) -> PolicyProgram:
    """Return the program of a mutating policy."""
    spec, compiler = policy.spec, AdmissionCompiler()
    declared = Declared(params=spec.param_kind is not None)
    _add_variables(compiler, spec.variables, declared._replace(patches=True))
    mutations = []
    for mutation in spec.mutations:
        is_json_patch = mutation.patch_type == JSON_PATCH
        form = mutation.json_patch if is_json_patch else mutation.apply_configuration
        text = "" if form is None else form.expression
        returns = Returns.JSON_PATCHES if is_json_patch else Returns.OBJECT
        compiled = compiler.compile(text, returns, declared._replace(patches=True))
        mutations.append(CompiledMutation(is_json_patch, compiled))
    return PolicyProgram(
        spec.failure_policy or FAIL,
        compiler.variables,
        _conditions(compiler, spec.match_conditions, declared),
        mutations=tuple(mutations),
    )


def compile_conditions(webhook: AnyWebhook) -> PolicyProgram:
    """Return the match conditions of a webhook, which have neither parameters nor variables."""
    compiler = AdmissionCompiler(composes=False)
    found = _conditions(compiler, webhook.match_conditions, Declared())
    return PolicyProgram(webhook.failure_policy or FAIL, conditions=found)


def _add_variables(
    compiler: AdmissionCompiler, variables: tuple[Variable, ...], declared: Declared
) -> None:
    for variable in variables:
        compiler.add_variable(variable.name, variable.expression, declared)


def _conditions(
    compiler: AdmissionCompiler, conditions: tuple[MatchCondition, ...], declared: Declared
) -> tuple[NamedCondition, ...]:
    return tuple(
        NamedCondition(each.name, compiler.compile(each.expression, Returns.BOOL, declared))
        for each in conditions
    )
