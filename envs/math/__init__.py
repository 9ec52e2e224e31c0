"""Mathematics: problem sources and the grader.

``grade(gold, reply)`` judges a whole reply. Importing this package imports no sympy; the
grader starts workers that do when an answer needs symbolic work.
"""

from flexmg.envs.math.grader import MathDomain, canonical, grade, is_equivalent

__all__ = ["MathDomain", "canonical", "grade", "is_equivalent"]
