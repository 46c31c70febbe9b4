"""Report cards and transcripts on paper, and their verification by the holder of the paper."""
