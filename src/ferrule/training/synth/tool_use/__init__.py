"""Conversations with foreign tools: tools that the model has never seen, offered at the start of a conversation.

templates, template_parsing                 the content of tool templates (`../tools/*.txt`), and how they are parsed
type_parsing, phrasing_parsing              their parameters; their phrasings and results
"""
