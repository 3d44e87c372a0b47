"""How the interface reads what its callers pass: numbers, devices, arrays, layouts and operands."""
