"""What only the figures of the working notes use: races of gates, reduced models, continuum limits."""
