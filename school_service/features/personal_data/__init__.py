"""The stored data of a person: all of it in one document, and its erasure."""
