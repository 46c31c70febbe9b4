"""Form teachers: which employees look after a batch."""
