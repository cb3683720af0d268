"""The lab: what a GPT-2 is made of, built from scratch, taken apart and measured.

Each module is one experiment and stands by itself as a text to read from top to bottom. They need
torch and, where they hold their numbers against a pretrained model, `resid.model`.
"""
