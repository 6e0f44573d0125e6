"""Responses of one ReLU neuron to a class: effective, linear, Ising, pulses."""
