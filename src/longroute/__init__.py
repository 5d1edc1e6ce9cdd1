"""Longroute."""
