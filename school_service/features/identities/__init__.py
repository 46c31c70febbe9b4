"""Links of accounts to identities of an outside provider."""
