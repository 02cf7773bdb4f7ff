"""One algebra for densities: Gaussians and mixtures of them, whatever is missing."""
