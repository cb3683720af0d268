"""What must hold for any GPT-2 on any machine: the identities of the readings, and how they run."""
