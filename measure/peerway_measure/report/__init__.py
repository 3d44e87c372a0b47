"""Show records: as tables and OSU text on a terminal, and as a page with plots in a browser."""
