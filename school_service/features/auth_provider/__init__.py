"""The built-in identity provider: its token endpoint, keys and description of itself."""
