"""What a network answers: densities, conditionals, samples, and its structure for display."""
