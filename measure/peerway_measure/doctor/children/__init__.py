"""Programs that the doctor runs as child processes: each queries one driver or library and prints JSON."""
