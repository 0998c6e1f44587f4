"""How containers run: as processes of this machine, by podman, or only on paper."""
