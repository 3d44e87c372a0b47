"""Records made readable: tables and OSU text for a terminal, a page with plots for a browser."""
