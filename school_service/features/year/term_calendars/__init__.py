"""Term calendars: when a term begins and ends, how often school opened, and the notice to parents."""
