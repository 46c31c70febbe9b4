"""The caller: their account, roles and permissions, and their relations to people, classes and subjects."""
