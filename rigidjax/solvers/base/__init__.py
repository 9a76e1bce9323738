"""Parts of several solvers: terms, linear algebra, dense output, hooks, replayed steps.

Start with `terms.py`.
Imports no other folder of `solvers`.
"""
