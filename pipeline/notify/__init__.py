"""Messages to receivers, each sent once.

ways         how a message is sent: by webhook, notification block or e-mail
alert_rules  which rows of which relation are news, and for whom
selected     the rows of a rule, and what else is open
match        what is new and what is resolved since the last message
outbox       each message once, by receiver and way
alerts       messages about findings
blocked      messages about a night that the gate blocked
"""
