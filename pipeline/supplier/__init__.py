"""The wire: what is asked and answered, how a token is got, and the one client that sends.

requests    what may be asked, with every rule of the supplier's document
answers     what comes back, for people, quotes and contract tests (the bulk path decodes elsewhere)
auth        OAuth client credentials as an httpx authentication flow
pacing      when the next request may leave, and how many may leave a day
retrying    which failures are tried again, and after how long
failures    every error of the layers below as one of our failures
connection  the pool
client      SupplierClient: one search in, one `Answer` out
outcomes    what an `Answer` means for the cells that it was asked for
"""
