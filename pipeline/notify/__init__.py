"""Messages to receivers, each sent once.

ways         how a message is sent: by webhook, notification block or e-mail
chat_card    a message as a card of Microsoft Teams
alert_rules  which rows of which relation are news, and for whom
selected     the rows of a rule, and what else is open
match        what is new and what is resolved since the last message
outbox       each message once, by receiver and way
alerts       messages about findings
problem_lines, pages   their lines, and where readers open a page
blocked      messages about a night that the gate blocked
published    a message to downstream jobs, once a night
"""
