"""Theories of networks of several neurons: committees on Gaussian data, gated linear networks."""
