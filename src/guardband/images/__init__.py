"""Images with responses, and features of them from a pre-trained network (the extra ``images``)."""

from guardband.images.backbone import Backbone as Backbone
from guardband.images.backbone import backbone as backbone
from guardband.images.features import features as features
from guardband.images.rows import Augmentation as Augmentation
from guardband.images.rows import DamagedImagesError as DamagedImagesError
from guardband.images.rows import ImageRows as ImageRows
from guardband.images.rows import from_folder as from_folder
from guardband.images.rows import from_parquet as from_parquet
