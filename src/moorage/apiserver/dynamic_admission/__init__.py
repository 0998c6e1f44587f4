"""Dynamic admission: policies and webhooks, which users configure with objects.

plugin                their place in the admission chain
hook_source           all policies and webhooks, and which may match a request
attributes            a write as policies and webhooks see it
matching              which requests they match
policy_programs       the expressions of a policy, compiled
evaluation            evaluates them, on the event loop or in a worker thread
access_reviewer       the variable `authorizer`
params                the parameters of a policy
param_access          who may write policies with parameters
validating_policies   ValidatingAdmissionPolicy
mutating_policies     MutatingAdmissionPolicy
mutated_objects       objects as policies and webhooks change them
reinvocation          which of them run again after others have changed an object
webhooks              mutating and validating webhooks
admission_review      requests to webhooks, and their responses
webhook_client        calls webhooks over TLS, bounded in time and size
service_resolver      the address behind a service
"""
