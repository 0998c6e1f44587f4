"""The API server: what it does with requests. So far what patches mean, and what it tells of itself."""
