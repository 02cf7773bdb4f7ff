"""What makes scores of densities: measures, p-values, what is held back, drift and blame."""
