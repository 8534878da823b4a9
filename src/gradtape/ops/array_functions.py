"""The functions of an array module that forwards use, for tensors: as `xp`, a composition.

A forward that is written with these functions, operators and methods of arrays says what compiled
code does as well: `lower=array_functions`. It must not write into arrays, nor branch on values.
"""

from gradtape.ops.arithmetic import abs as abs
from gradtape.ops.comparison import isfinite as isfinite
from gradtape.ops.exponential import exp as exp, log as log, sqrt as sqrt
from gradtape.ops.reduce import max as max, min as min, sum as sum
from gradtape.ops.select import maximum as maximum, where as where
