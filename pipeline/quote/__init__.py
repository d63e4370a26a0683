"""Quotes: whether a stored price is still valid when its product is requested. Off by default.

A quote makes a reservation. So each one is recorded before it is sent and right after its answer, sent once, and never
repeated automatically; an intent without an answer stays `unknown`.
"""
