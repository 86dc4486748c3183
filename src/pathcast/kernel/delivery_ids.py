"""The ids of many deliveries by the kernel; `pathcast.registry.identity` says what they are.

Example:
    >>> one, versions = pa.array([0], pa.uint32()), pa.array([bytes(16)], pa.binary(16))
    >>> delivery_ids(versions, one, ["m1"], one, one).type
    FixedSizeBinaryType(fixed_size_binary[16])
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pathcast.boundary import native, native_errors


def delivery_ids(
    versions: pa.FixedSizeBinaryArray,
    version_places: pa.Array,
    messages: Sequence[str],
    message_places: pa.Array,
    result_numbers: pa.Array,
) -> pa.FixedSizeBinaryArray:
    """The ids of `pathcast.registry.identity.delivery_id_array`, made by the kernel.

    Cost: 15 ns a delivery, and 0.2 µs for each message and result number.
    """
    with native_errors():
        return native.delivery_ids(
            versions, version_places, list(messages), message_places, result_numbers
        )
