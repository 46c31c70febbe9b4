"""Grade configurations: the bands of percentages to grade scores by."""
