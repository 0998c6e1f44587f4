"""Custom resources: their definitions, and objects by the schemas of those.

definition           a definition, compiled: versions, kinds, conversion
strategy             the strategy of objects
definition_strategy  the strategy of definitions

structural           schemas as nodes
pruning, defaulting  what a schema does to an object
schema_values        Results of validation; types and numbers as Go names them
schema_validator     validation of values, with kube-openapi's messages
formats              formats of strings
list_types           lists that are sets or maps
embedded_metadata    resources in resources
correlation          which value a value was before an update

rule_types           types and values of expressions
rule_compiler        the rules of a node, compiled
rule_validator       the rules of a schema, evaluated

definition_rules     rules for definitions: names, versions, conversion
version_rules        rules for parts of versions: subresources, columns, selectable fields
schema_checks        all checks of a schema, in order; rules for defaults
structural_rules     what makes a schema structural
schema_rules         other rules for schemas
rule_costs           expressions compile, and cost little enough
field_paths          paths to fields in schemas
"""
