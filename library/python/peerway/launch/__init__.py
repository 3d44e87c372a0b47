"""Starting a program as several ranks on this host: where each runs, what it is told, and who ends it."""
