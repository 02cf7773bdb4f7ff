"""Fields that are categories: their probabilities, and what numbers are like given them."""
