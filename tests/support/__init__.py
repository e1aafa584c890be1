"""What several test folders share: real repositories, real programs."""
