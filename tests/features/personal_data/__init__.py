"""All that is stored of a person: told and erased."""
