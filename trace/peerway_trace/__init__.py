"""Traces of programs: what records them, what reads them, and the page that shows them."""
