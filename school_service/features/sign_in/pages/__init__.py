"""The sign-in page, OAuth's authorization endpoint, and the page for taking an invitation."""
