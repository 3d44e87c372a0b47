"""Records traces of programs, reads them, and shows them as a page."""
