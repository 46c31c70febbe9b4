"""Benchmarks: each measures its counterpart in the same run. Run one as `python -m benchmarks.throughput`."""
