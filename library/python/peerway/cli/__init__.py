"""The verbs of the library, a file each."""
