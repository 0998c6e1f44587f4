"""Custom resources: strategies of definitions, and of the objects that they define.

definition           compiled definitions: versions, kinds, conversion
strategy             the strategy of objects
definition_strategy  the strategy of definitions

structural           structural schemas as nodes
pruning, defaulting  apply a schema to an object
schema_values        validation results; types and numbers as Go names them
schema_validator     validation of values, with kube-openapi's messages
formats              formats of strings
list_types           lists that are sets or maps
embedded_metadata    embedded resources
correlation          matches values with those before an update

rule_types           types and values of expressions
rule_compiler        compiles the rules of a node
rule_validator       evaluates the rules of a schema

definition_rules     rules for definitions: names, versions, conversion
version_rules        rules for parts of versions: subresources, columns, selectable fields
schema_checks        all checks of a schema, in order; checks of defaults
structural_rules     what makes a schema structural
schema_rules         other rules for schemas
rule_costs           checks that expressions compile and stay within cost limits
field_paths          paths to fields in schemas
"""
