"""What models, reads and services are made of; free of HTTP."""
