"""Responses of one neuron to a class, f(w) = E[1(⟨w, X⟩ ≥ 0) X]: effective, linear, Ising, pulses."""
