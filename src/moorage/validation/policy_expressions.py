"""The expressions of admission policies: variables, validations, audit annotations, mutations."""

from __future__ import annotations

import re
from typing import NamedTuple

from moorage.api import names
from moorage.api.admissionregistration import (
    APPLY_CONFIGURATION,
    JSON_PATCH,
    AuditAnnotation,
    Mutation,
    ValidatingAdmissionPolicySpec,
    Validation,
    Variable,
)
from moorage.api.field_path import Path, root
from moorage.api.meta import ObjectMeta
from moorage.cel.admission import AdmissionCompiler, Declared, Returns
from moorage.validation.admission_rules import (
    scope_of,
    validate_expression,
)
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import label_name

SPEC = root("spec")
REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
PATCH_TYPES = (APPLY_CONFIGURATION, JSON_PATCH)
AUDIT_ANNOTATIONS_MAX = 20
AUDIT_EXPRESSION_BYTES_MAX = 5 * 1024

_is_identifier = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    )
)


class PolicyExpressions(NamedTuple):
    """How the expressions of a policy are compiled."""

    compiler: AdmissionCompiler
    has_params: bool
    stored: frozenset[str]  # expressions of the stored policy

    @property
    def declared(self) -> Declared:
        """What expressions may use."""
        return Declared(params=self.has_params)


def validate_variable(variable: Variable, path: Path, expressions: PolicyExpressions) -> ErrorList:
    """Validate a variable, and declare it for the expressions that follow."""
    found: ErrorList = []
    name = variable.name
    if not name.strip():
        found.append(required(path.child("name"), "name is not specified"))
    elif not _is_identifier(name) or name in _RESERVED:
        found.append(invalid(path.child("name"), name, "must be a valid CEL identifier"))
    place, text = path.child("expression"), variable.expression
    if not text.strip():
        return [*found, required(place, "expression is not specified")]
    return found + validate_expression(
        text,
        place,
        lambda: expressions.compiler.add_variable(
            name, text, expressions.declared, scope_of(text, expressions.stored)
        ),
    )


def validate_validation(
    validation: Validation, path: Path, expressions: PolicyExpressions
) -> ErrorList:
    """Validate a validation: its expression, and its message."""
    found: ErrorList = []
    if not validation.expression.strip():
        found.append(required(path.child("expression"), "expression is not specified"))
    else:
        place = path.child("expression")
        found += _validate_compiled(
            validation.expression, Returns.BOOL, place, expressions, expressions.declared
        )
    text, place = validation.message_expression, path.child("messageExpression")
    if text and not text.strip():
        found.append(invalid(place, text, "must be non-empty if specified"))
    elif text:
        declared = Declared(params=expressions.has_params, authorizer=False)
        found += _validate_compiled(text, Returns.STRING, place, expressions, declared)
    text, place = validation.message, path.child("message")
    if text and not text.strip():
        found.append(invalid(place, text, "must be non-empty if specified"))
    elif "\n" in text.strip() or "\r" in text.strip():
        found.append(invalid(place, text, "must not contain line breaks"))
    if validation.reason is not None and validation.reason not in REASONS:
        found.append(not_supported(path.child("reason"), validation.reason, REASONS))
    return found


def _validate_compiled(
    text: str,
    returns: Returns,
    path: Path,
    expressions: PolicyExpressions,
    declared: Declared,
    *,
    shown: str | None = None,
) -> ErrorList:
    scope = scope_of(shown or text, expressions.stored)
    return validate_expression(
        text,
        path,
        lambda: expressions.compiler.compile(text, returns, declared, scope),
        shown=shown,
    )


def validate_audit_annotations(
    metadata: ObjectMeta, spec: ValidatingAdmissionPolicySpec, expressions: PolicyExpressions
) -> ErrorList:
    """Validate the audit annotations of a policy."""
    annotations, place = spec.audit_annotations, SPEC.child("auditAnnotations")
    found: ErrorList = []
    if len(annotations) > AUDIT_ANNOTATIONS_MAX:
        detail = f"must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations"
        found.append(invalid(place, annotations, detail))
    seen: set[str] = set()
    for position, annotation in enumerate(annotations):
        path = place.index(position)
        found += _validate_audit_annotation(metadata.name, annotation, path, expressions)
        if annotation.key in seen:
            found.append(duplicate(path.child("key"), annotation.key))
        seen.add(annotation.key)
    return found


def _validate_audit_annotation(
    policy: str, annotation: AuditAnnotation, path: Path, expressions: PolicyExpressions
) -> ErrorList:
    key = path.child("key")
    if policy:
        found = label_name(f"{policy}/{annotation.key}", key)
    else:
        found = [invalid(key, annotation.key, "requires metadata.name be non-empty")]
    given, place = annotation.value_expression, path.child("valueExpression")
    text = given.strip()
    if not text:
        return [*found, required(place, "valueExpression is not specified")]
    if names.byte_length(text) > AUDIT_EXPRESSION_BYTES_MAX:
        detail = f"must not exceed {AUDIT_EXPRESSION_BYTES_MAX} bytes in length"
        return [*found, required(place, detail)]
    returns, declared = Returns.STRING_OR_NULL, expressions.declared
    return found + _validate_compiled(text, returns, place, expressions, declared, shown=given)


def validate_mutation(mutation: Mutation, path: Path, expressions: PolicyExpressions) -> ErrorList:
    """Validate a change, which has one of two forms."""
    forms = {
        JSON_PATCH: ("jsonPatch", mutation.json_patch, Returns.JSON_PATCHES),
        APPLY_CONFIGURATION: (
            "applyConfiguration",
            mutation.apply_configuration,
            Returns.OBJECT,
        ),
    }
    kind = mutation.patch_type
    if not kind:
        return [required(path.child("patchType"))]
    if kind not in forms:
        return [not_supported(path.child("patchType"), kind, PATCH_TYPES)]
    field, given, returns = forms.pop(kind)
    ((other, unwanted, _),) = forms.values()
    found: ErrorList = []
    if given is None:
        detail = f"must be specified when patchType is {kind}"
        found.append(required(path.child(field), detail))
    elif not given.expression.strip():
        found.append(required(path.child(field, "expression")))
    else:
        declared = Declared(params=expressions.has_params, patches=True)
        place, text = path.child(field, "expression"), given.expression.strip()
        found += _validate_compiled(text, returns, place, expressions, declared)
    if unwanted is not None:
        detail = f"must not be specified when patchType is {kind}"
        found.append(invalid(path.child(other), f"{{{other}}}", detail))
    return found
