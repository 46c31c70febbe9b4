"""Updates from the release before, and back."""
