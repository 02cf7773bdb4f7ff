"""Loads all that a worker needs: imported in the process that workers are forked from."""

import faust_oslrau.app.commands.worker
import faust_oslrau.app.worker  # noqa: F401 (the command imports it when it runs)
from faust_oslrau.learner import compile_kernels

compile_kernels()
