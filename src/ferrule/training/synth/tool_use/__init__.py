"""Conversations with foreign tools: tools that the model has never seen, offered at the start of a conversation.

templates, template_parsing                 the content of tool templates (`../tools/*.txt`), and how they are parsed
type_parsing, phrasing_parsing              their parameters; their phrasings and results
inventing, offers, offer_drawing            invent tools, rename and call them, choose which are offered
sources, arguments, requests                draw values, write requests with them, join several requests
results, tool_replies, exchanges            write results, replies, and what a user says after them
conversations                               draws whole conversations
"""
