"""The commands of `faust-oslrau`, one module each."""
