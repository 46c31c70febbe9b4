"""The registry: which schools there are, who may enter them, and how it is installed."""
