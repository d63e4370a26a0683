"""What goes wrong on demand: failed requests, and answers that a careless reader trips over."""
