"""The wire: requests, answers, tokens, and the one client that sends.

    requests      requests, with every rule of the supplier's document
    wire          answers as types: their one declaration
    fields        that declaration as data, for reading part by part and for comparing with the document
    date_times    the date-times in answers
    client        SupplierClient: one search in, one `Answer` out
    sender        single requests, each in its slot, and where they are redirected
    answer        `Answer`, the result of one search, and `Failure`, why there is none
    outcomes      what an `Answer` means for its cells
    auth          OAuth client credentials as an httpx authentication flow
    pacer         when the next request may be sent, and how many a day
    shared_pace   the same for several processes, by send slots that they lease
    shared_calls  the daily cap of several machines
    rate_store    the Redis that keeps both
    rate_mark     whether the workers of a cluster share it
    store_away    what is raised when it does not answer, and how long to wait for it
    retries       which failures are retried, and after how long
    exchange      one request and its response, within limits of time and bytes
    connection    the pool
    failures      errors of the layers below as our failures
    envelope      an answer as a whole: whether it is one
    error_bodies, failure_signs   errors in an answer, in the document's shapes and in others
    bodies        inflating within a limit, and recognising JSON
    secret_texts  secrets in what the supplier answers, replaced

The answers of a sweep are not decoded here: they land as received.
"""
