"""Operations of neural networks as functions, under the names of `torch.nn.functional`."""

__all__: list[str] = []
