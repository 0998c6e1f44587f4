"""Policies and webhooks: admission that users configure with objects.

plugin                where they act in the chain of admission
hook_source           all of them, and which may be about a request
attributes            a write as they see it
matching              which requests they are about
policy_programs       the expressions of a policy, compiled
evaluation            their evaluation, on the event loop or in a worker thread
access_reviewer       the variable `authorizer`
params                the parameters of a policy
param_access          who may write a policy with parameters
validating_policies   ValidatingAdmissionPolicy
mutating_policies     MutatingAdmissionPolicy
mutated_objects       objects as policies and webhooks change them
reinvocation          who runs again after others have changed an object
webhooks              mutating and validating webhooks
admission_review      what a webhook is asked, and what it answers
webhook_client        calls over TLS, bounded in time and size
service_resolver      the address behind a service
"""
