"""The explorer: pages to watch a receptive field being born, and the processes that compute for them."""
