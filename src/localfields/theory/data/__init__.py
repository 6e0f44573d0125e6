"""`predict` on data: the distribution behind the samples, and a neuron that learns it."""
