"""The sign-in page, OAuth's authorization endpoint, and the page that takes an invitation."""
