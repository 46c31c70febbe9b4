"""The page that takes an invitation."""
