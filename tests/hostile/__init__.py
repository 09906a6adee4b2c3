"""Damaged input: every truncation, seeded mutations, sanitised builds, bombs."""
