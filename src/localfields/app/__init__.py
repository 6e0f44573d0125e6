"""The explorer: web pages that show a receptive field develop, and processes that compute."""
