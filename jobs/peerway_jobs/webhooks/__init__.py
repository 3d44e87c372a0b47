"""Messages to Slack, Mattermost and other programs over HTTP. None is sent unless the server is given
settings.

settings.py   reads and checks the file of settings
events.py     what happened since a webhook's last message; only reads the database
messages.py   the text of a message in the markup of its service, or as JSON
post.py       sends one message
deliver.py    sends what is due, tries again after failures, and records each message
"""
