"""Data that users load: selling prices, reference rates, the property map, weights, properties.

Each kind of file is one module: its columns, and the rules between its rows. A file is checked whole before anything
of it is kept; `load` then keeps it as it is and appends its rows to the lake.
"""
