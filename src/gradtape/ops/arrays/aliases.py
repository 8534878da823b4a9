"""Other names that NumPy has for functions of the base."""

from __future__ import annotations

from gradtape.ops.arithmetic import divide, fabs as fabs, float_power as float_power, remainder
from gradtape.ops.cast import conj
from gradtape.ops.comparison import bitwise_invert
from gradtape.ops.rounding import round, trunc

around = round
bitwise_not = invert = bitwise_invert
conjugate = conj
fix = trunc
mod = remainder
true_divide = divide
