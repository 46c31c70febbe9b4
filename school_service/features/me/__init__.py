"""Who the caller is: their account, roles and permissions, and to whom they are related."""
