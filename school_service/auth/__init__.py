"""Who is calling: tokens of the outside provider and of the service itself, and what their bearers may do.

`keys`        the service's own signing key
`jwks`        the outside provider's keys, fetched and kept
`tokens`      verifying and issuing tokens
`principal`   the caller: what its claims say, and its state in the school
`passwords`   hashing and checking passwords
`provider`    the built-in identity provider, for installations without an outside one
"""
