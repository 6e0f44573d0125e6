"""`predict` on data: what rows say of the distribution behind them, and of a neuron that learns it."""
