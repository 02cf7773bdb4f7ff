"""Compiled arithmetic: the compiler's decorator, lanes of rows, exponential and logarithm."""
