"""Data that users load: selling prices, reference rates, the property map, weights, properties; and notes about cases.

Each kind of file has a module with its columns and the rules between its rows. A file is checked completely before any
of it is kept; `load` then keeps it unchanged and appends its rows to the lake.
"""
