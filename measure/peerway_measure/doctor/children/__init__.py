"""Programs that the doctor runs as child processes: each asks one driver or library and prints JSON."""
