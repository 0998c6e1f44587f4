"""The topology picture: what is in each machine, and who has it."""
