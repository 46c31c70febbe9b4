"""The current academic session: the first screen of a front end asks for it."""
