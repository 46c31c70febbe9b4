"""Subjects, such as Mathematics: exposed under the path `/templates`."""
