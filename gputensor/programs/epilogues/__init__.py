"""Passes that move later steps into convolutions and products, and make channels adjacent."""
