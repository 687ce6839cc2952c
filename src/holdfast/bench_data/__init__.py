"""Data directories to measure with: `holdfast bench seed`."""
