"""Reports of timing studies, for people: one HTML file, or tables for a terminal."""
