"""Operations of neural networks."""
