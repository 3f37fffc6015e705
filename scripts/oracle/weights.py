"""Metadata and dequantised weights of a GGUF file."""
import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize


class Weights:
    """A GGUF file opened for the oracle: `metadata` by key, tensors as float64 arrays [rows, columns]."""

    def __init__(self, path):
        reader = GGUFReader(path)
        self.metadata = {key: field for key, field in reader.fields.items()}
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.architecture = self.get("general.architecture")
        self._kept = {}

    def get(self, key, default=None):
        """Value of a metadata key (number, text or list)."""
        field = self.metadata.get(key)
        return default if field is None else field.contents()

    def parameter(self, key, default=None):
        """Value of a key of this architecture, such as `attention.head_count`; KeyError when absent and no default."""
        value = self.get("%s.%s" % (self.architecture, key), default)
        if value is None:
            raise KeyError("%s.%s" % (self.architecture, key))
        return value

    def __contains__(self, name):
        return name in self.tensors

    def tensor(self, name):
        """A tensor in float64. The `gguf` package dequantises to float32; that value is what the oracle takes as exact."""
        if name not in self._kept:
            self._kept[name] = self._float32(name).astype(np.float64)
        return self._kept[name]

    def rows(self, name, first, last):
        """Some rows of a large tensor in float64, not kept."""
        tensor = self.tensors[name]
        return dequantize(tensor.data[first:last], tensor.tensor_type).astype(np.float64)

    def gather(self, name, indices):
        """Chosen rows of a large tensor in float64, not kept."""
        tensor = self.tensors[name]
        return dequantize(tensor.data[np.asarray(indices)], tensor.tensor_type).astype(np.float64)

    def row_count(self, name):
        return int(self.tensors[name].data.shape[0])

    def _float32(self, name):
        tensor = self.tensors[name]
        return dequantize(tensor.data, tensor.tensor_type)
