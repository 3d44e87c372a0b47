"""The server: takes what agents send, answers the API, shows the pages."""
