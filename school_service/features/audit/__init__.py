"""The audit log: the author of each change, its moment, the values before and after."""
