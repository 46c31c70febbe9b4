"""The operator's verbs: `tenants …` and `clients …`, by subject; `groups` has them in their order."""
