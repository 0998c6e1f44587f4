"""Fixes on trial: every change that an answer offers is written, validated and planned afresh.

worlds    clusters with pods that get no node: recorded cases, situations, examples of the seeds
mistakes  random clusters and pods with everyday mistakes
trial     the laws of an answer, and what is counted about it
"""
