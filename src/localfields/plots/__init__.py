"""Axes-level drawing: each function takes matplotlib axes and data, and draws one thing."""
