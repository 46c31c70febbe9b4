"""Academic sessions and terms."""
