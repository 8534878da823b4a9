"""Fourier transforms, under the names of `numpy.fft` and `scipy.fft`."""

__all__: list[str] = []
