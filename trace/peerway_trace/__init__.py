"""Record traces of programs, read them, and show them as a page."""
