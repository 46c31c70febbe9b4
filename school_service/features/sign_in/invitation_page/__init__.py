"""The page for taking an invitation."""
