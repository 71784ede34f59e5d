"""The daemon's cost beside its peers: `make bench`. Measures processes from outside and imports nothing of the app."""
