"""Shows records in a browser, as a page with plots."""
