"""Authentication and authorization.

users                        users, groups and static tokens
access                       the attributes of a request, and the contract of authorizers
authenticator                certificates, bearer tokens, impersonation
service_account_tokens       keys and claims of tokens
token_requests               TokenRequest: issuing tokens
authorizer                   the seam to requests: RBAC, one admin token, or everything
rbac                         the RBAC authorizer, and the escalation check
policy_rules                 what a rule allows, aggregation
node_authorizer              what nodes may access
reviews                      TokenReview, SubjectAccessReview and their kin
bootstrap_policy             bootstrap roles and bindings as objects
role_reconciler              stores bootstrap policy, aggregates ClusterRoles
certificates                 X.509 certificates
credentials                  credential files of a server and of nodes
"""
