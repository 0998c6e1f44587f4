"""The language: parse → fold macros → check → estimate → compile. Knows nothing of Kubernetes."""
