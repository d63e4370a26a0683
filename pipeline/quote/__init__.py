"""Quotes: whether a stored price still holds when it is asked for by its product. Off by default.

A quote makes a reservation. So each one is written down before it leaves and right after its answer has come, goes out
once, and is never sent again automatically; an intent without an answer stays `unknown` for ever.
"""
