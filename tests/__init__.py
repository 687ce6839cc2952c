"""Tests of Holdfast, by what they stand on: plain values, ports, simulation, real processes."""
