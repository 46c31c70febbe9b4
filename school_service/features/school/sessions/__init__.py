"""Academic sessions (years) and their terms."""
