"""What makes scores of densities: measures, p-values, the guard, drift and blame."""
