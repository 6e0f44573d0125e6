"""Assumptions of the effective flow, measured on a stimulus and along a trajectory."""
