"""Grade configurations: the bands of percentages that scores are graded by."""
