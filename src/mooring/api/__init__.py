"""The nouns of DRA: kinds, quantities, versions, names, paths, gates, and how they are read."""
