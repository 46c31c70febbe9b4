"""Mark sheets: the scores of an arm in a subject and a term, all assessments at once."""
