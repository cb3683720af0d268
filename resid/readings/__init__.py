"""The readings: each turns a recording into one result."""
