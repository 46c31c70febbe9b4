"""The year: an academic session is set up, and its terms.

- `term_calendars`: when a term begins and ends, how often school opened
- `session_copies`: a session is set up on the model of another one
"""
