"""The verbs of measuring, a file each."""
