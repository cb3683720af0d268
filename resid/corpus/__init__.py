"""Readings as statistics over text: read, cut into windows, batched, summed, merged, resumed."""
