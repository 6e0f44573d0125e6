"""The explorer: web pages that show a receptive field develop, and the processes that compute for them."""
