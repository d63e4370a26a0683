"""The simulated supplier's HTTP side: tokens, validation, answers, control, and the process they run in."""
