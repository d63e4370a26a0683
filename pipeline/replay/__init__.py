"""What can be recomputed from raw answers, offline.

evidence    one raw answer, from its address to request and body
finding     findings of the published file, by their ids
answers     the raw answers behind findings, checked against the tables
republish   some answers of some nights, normalised and published again in memory
explain     a finding traced to its raw answers and judged again
needed      which parts of the state that takes
drift       how the answers of a sweep differ from the supplier's document
"""
