"""The generators of test data: their pure parts, and a small run of each that Java allows."""
