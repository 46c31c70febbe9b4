"""Who is calling: tokens of the outside provider and of the service itself, and what their bearers may do.

`signing_key`     the service's own signing key
`jwks`            the outside provider's keys, fetched and cached
`tokens`          verifying and issuing tokens
`principal`       what a verified token says, and the principal that it is in its school
`passwords`       which passwords are good enough; hashing and checking them
`login_throttle`  limits of wrong passwords
"""
