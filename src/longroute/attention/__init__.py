"""Attention in the global frame, the encodings that it runs with, and its definition."""

from longroute.attention.attend import Route as Route
from longroute.attention.attend import attend as attend
from longroute.attention.cache import LayerCache as LayerCache
from longroute.attention.definition import walk_attention as walk_attention
from longroute.attention.encoding import Encoding as Encoding
from longroute.attention.encoding import PositionEncoding as PositionEncoding
from longroute.attention.names import encoding_name as encoding_name
from longroute.attention.names import parse_encoding as parse_encoding
from longroute.attention.pruning import Pruning as Pruning
