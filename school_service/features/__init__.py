"""The areas of the service, a package each: models, schemas, reads, service, views."""
