"""Report cards and transcripts on paper, and their verification by whoever holds the paper."""
