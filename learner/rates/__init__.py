"""How many records come: windows with far more or far fewer than usual."""
