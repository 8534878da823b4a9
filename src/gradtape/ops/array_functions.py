"""The functions of an array module that forwards use, for tensors.

With this module as `xp`, a forward is a composition of ops. One written with only these functions,
operators and methods of arrays can be compiled as well: `lower=array_functions`. It must not write
into arrays, nor branch on values.
"""

from gradtape.ops.arithmetic import abs as abs
from gradtape.ops.comparison import isfinite as isfinite
from gradtape.ops.exponential import exp as exp, log as log, sqrt as sqrt
from gradtape.ops.join import stack as stack
from gradtape.ops.reduce import max as max, min as min, sum as sum
from gradtape.ops.select import maximum as maximum, where as where
