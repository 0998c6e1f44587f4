"""Who asks: certificates, tokens, and users who act as others."""
