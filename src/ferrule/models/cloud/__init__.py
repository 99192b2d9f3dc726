"""Models that Azure, Amazon Bedrock and Google's Vertex AI serve, by the official packages, which sign in there.

Requests and answers are those of the provider's own API; only the sending is the package's.
"""
