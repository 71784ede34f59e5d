"""Small programs that put a peer to work as its own documentation says."""
