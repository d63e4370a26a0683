"""From raw answers to typed rows. Pure but for `segment`, which reads shards and writes the tables' files."""
