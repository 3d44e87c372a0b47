"""Measuring: benchmarks, route tables, comparisons, reports, storage, campaigns and rehearsals."""
