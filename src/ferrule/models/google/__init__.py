"""Gemini, by Google's Gemini API."""
