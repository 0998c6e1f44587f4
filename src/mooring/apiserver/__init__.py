"""The API server: so far what patches mean, and what it tells clients of itself."""
