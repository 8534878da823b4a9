"""The steps of a recurrent layer, compiled; loaded when such a layer is first called."""

from gradtape.compiler.jit import jit
from gradtape.nn.layers.recurrent import sequence_steps

sequence = jit(sequence_steps, static_argnums=0)
