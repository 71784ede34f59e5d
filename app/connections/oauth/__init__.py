"""Adapter: OAuth as a client of authorization servers, on Authlib and httpx2. SPEC §oauth."""
