"""Score sheets: the scores of a cohort subject, and the sheets that they are entered with."""
