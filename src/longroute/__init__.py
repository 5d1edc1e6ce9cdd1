"""Position encodings that accumulate along the route, why they extrapolate, and how far: measured on your own text.

What a model of your own needs is here: `parse_encoding(name).build(shape)` makes the module of one layer, calling it
gives a `Route`, and `attend(query, key, value, route)` is attention along it.
"""

__version__ = "0.1.0"

from longroute.attention import Encoding as Encoding
from longroute.attention import PositionEncoding as PositionEncoding
from longroute.attention import Route as Route
from longroute.attention import attend as attend
from longroute.attention import encoding_name as encoding_name
from longroute.attention import parse_encoding as parse_encoding
from longroute.data.packing import Packing as Packing
from longroute.errors import InputError as InputError
from longroute.model import Decoder as Decoder
from longroute.model import Decoding as Decoding
from longroute.transport import LayerShape as LayerShape
