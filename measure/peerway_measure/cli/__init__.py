"""The commands of measuring, one in each file."""
