"""SciPy's optimizers, given derivatives by gradtape, with differentiable solutions."""
