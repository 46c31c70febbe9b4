"""School days: when school is open, by the calendars of terms, the weekdays, and the exceptional days."""
