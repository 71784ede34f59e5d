"""Decisions as functions and frozen values: no await, no I/O, no clock, no environment."""
