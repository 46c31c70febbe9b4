"""The caller: tokens of the outside provider and of the service itself, and the rights of their bearers.

`signing_key`     the service's own signing key
`jwks`            the outside provider's keys, fetched and cached
`tokens`          verifying and issuing tokens
`principal`       the content of a verified token, and its principal in its school
`passwords`       the policy of good passwords; hashing and checking them
`login_throttle`  limits of wrong passwords
"""
