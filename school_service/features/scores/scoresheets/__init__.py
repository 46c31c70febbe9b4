"""Score sheets: the scores of a cohort subject, and the sheets to enter them with."""
