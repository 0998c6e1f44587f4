"""The API server: what it does with requests. So far only what patches and applied objects mean."""
