"""Faces: the ways in, each a thin translation between a wire format and the engine."""
