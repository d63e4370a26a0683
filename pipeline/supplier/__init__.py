"""The wire: requests, answers, tokens, and the one client that sends.

    requests    what may be asked, with every rule of the supplier's document
    wire        what comes back, as types: the one declaration of it
    fields      that declaration as data, for those who read part by part or compare with the document
    date_times  the date-times in it
    client      SupplierClient: one search in, one `Answer` out
    answer      `Answer`, what one search came to, and `Failure`, why it came to nothing
    outcomes    what an `Answer` means for the cells that it was asked for
    auth        OAuth client credentials as an httpx authentication flow
    pacer       when the next request may leave, and how many may leave a day
    retries     which failures are tried again, and after how long
    exchange    one request and what came back, within limits of time and bytes
    connection  the pool
    failures    every error of the layers below as one of our failures
    bodies      inflating under a limit, and telling JSON from what is not

The answers of a sweep are not decoded here: they land as they came.
"""
