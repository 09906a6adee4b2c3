"""The image of a cluster from its metadata log, and the snapshots that hold one (KIP-630, KIP-778)."""

from __future__ import annotations

from kwire.lazy import attach

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.storage.metadata.downgrade import Downgrade as Downgrade
    from kwire.storage.metadata.errors import DowngradeError as DowngradeError
    from kwire.storage.metadata.errors import MetadataLogError as MetadataLogError
    from kwire.storage.metadata.image import ClusterImage as ClusterImage
    from kwire.storage.metadata.image_diff import Change as Change
    from kwire.storage.metadata.levels import Loss as Loss
    from kwire.storage.metadata.levels import is_lossless as is_lossless
    from kwire.storage.metadata.tables import Topic as Topic

# module -> the public names that it defines
_NAMES = {
    "kwire.storage.metadata.downgrade": ("Downgrade",),
    "kwire.storage.metadata.errors": ("DowngradeError", "MetadataLogError"),
    "kwire.storage.metadata.image": ("ClusterImage",),
    "kwire.storage.metadata.image_diff": ("Change",),
    "kwire.storage.metadata.levels": ("Loss", "is_lossless"),
    "kwire.storage.metadata.tables": ("Topic",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__, _NAMES)
