"""Renderings of results: terminal, figure, data. They read results only and never import torch."""
