"""Read what callers of the interface pass: numbers, devices, arrays, layouts and operands."""
