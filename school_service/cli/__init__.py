"""The command `school-service`: the operator's verbs, by subject; `program` puts them together."""
