"""Pages of docs/ that scripts write."""
