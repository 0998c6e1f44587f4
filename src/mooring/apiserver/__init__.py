"""The API server: what becomes of requests, and what clients read besides objects."""
