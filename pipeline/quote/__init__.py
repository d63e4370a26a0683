"""Quotes: whether a stored price still holds when it is asked for by its product. Off by default.

A quote makes a reservation. So each one is recorded before it is sent and right after its answer, sent once, and never
repeated automatically; an intent without an answer stays `unknown`.
"""
