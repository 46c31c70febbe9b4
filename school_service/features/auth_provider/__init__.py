"""The built-in identity provider: tokens for machine clients, where no outside provider is configured."""
