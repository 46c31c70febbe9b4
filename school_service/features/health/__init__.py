"""Whether the service and its database are up."""
