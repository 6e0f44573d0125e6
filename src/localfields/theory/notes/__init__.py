"""Tools of the working notes: races of gates, reduced models, the continuum limit."""
