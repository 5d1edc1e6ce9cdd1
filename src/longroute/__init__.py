"""Position encodings that accumulate along the route, why they extrapolate, and how far: measured on your own text."""

__version__ = "0.1.0"
