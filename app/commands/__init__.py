"""The commands of `faust-oslrau`, one in each module."""
