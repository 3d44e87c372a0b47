"""The verbs of the library, one in each file."""
