"""Term calendars: when a term begins and ends, how often school opened, and what parents are told."""
